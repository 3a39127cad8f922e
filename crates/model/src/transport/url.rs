//! Addresses: how a base URL and a protocol's path become one, and what of a URL may be shown.

use std::net::IpAddr;

use crate::Wire;

/// A URL as it may be shown: without user, password, query and fragment, any of which may hold a secret.
pub(crate) fn shown_url(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let (authority, path) = match rest.find('/') {
        Some(slash) => rest.split_at(slash),
        None => (rest, ""),
    };
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

/// The path and query of a URL: what a recording compares, because hosts and ports differ from run to run.
pub(crate) fn path_and_query(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find('/').and_then(|slash| rest.get(slash..)).unwrap_or("/")
}

/// Joins a base URL and a codec's path, so that each form of base URL that people paste works.
///
/// A path begins with the version of the protocol (`/v1/…`). It is left out where the base URL has a
/// version already: as its last segment, or, for the two OpenAI protocols, anywhere in its path, because
/// their gateways put it in the middle (`…/v1beta/openai`). A query of the base URL stays the query.
pub(crate) fn join_url(wire: Wire, base: &str, path: &str) -> String {
    let (base, base_query) = match base.split_once('?') {
        Some((base, query)) => (base, Some(query)),
        None => (base, None),
    };
    let base = base.trim_end_matches('/');
    let (path, query) = match path.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (path, None),
    };
    let relative = path.trim_start_matches('/');
    let (version, unversioned) = match relative.split_once('/') {
        Some((first, rest)) if is_version(first) => (first, rest),
        _ => ("v1", relative),
    };
    let mut segments = path_and_query(base).split('/').filter(|segment| !segment.is_empty());
    let has_version = match wire {
        Wire::Chat | Wire::Responses => segments.any(is_version),
        Wire::Anthropic | Wire::Gemini => segments.next_back().is_some_and(is_version),
    };
    let mut url =
        if has_version { format!("{base}/{unversioned}") } else { format!("{base}/{version}/{unversioned}") };
    let queries: Vec<&str> = base_query.into_iter().chain(query).filter(|part| !part.is_empty()).collect();
    if !queries.is_empty() {
        url.push('?');
        url.push_str(&queries.join("&"));
    }
    url
}

/// `v1`, `v4`, `v1beta`, `v1beta2`.
fn is_version(segment: &str) -> bool {
    let mut bytes = segment.bytes();
    bytes.next() == Some(b'v')
        && bytes.next().is_some_and(|byte| byte.is_ascii_digit())
        && bytes.all(|byte| byte.is_ascii_alphanumeric())
}

/// Whether a host is this machine by its very name, so that no look-up and no proxy is needed to reach it.
pub(crate) fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.eq_ignore_ascii_case("localhost")
        || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_urls_as_people_paste_them() {
        use Wire::{Anthropic, Chat, Gemini, Responses};
        let chat = "/v1/chat/completions";
        let messages = "/v1/messages";
        let cases = [
            (Anthropic, "https://api.anthropic.com", messages, "https://api.anthropic.com/v1/messages"),
            (Anthropic, "https://api.anthropic.com/v1/", messages, "https://api.anthropic.com/v1/messages"),
            (
                Anthropic,
                "https://gw.test/v1/acct/anthropic",
                messages,
                "https://gw.test/v1/acct/anthropic/v1/messages",
            ),
            (Chat, "http://127.0.0.1:11434", chat, "http://127.0.0.1:11434/v1/chat/completions"),
            (Chat, "http://127.0.0.1:11434/v1", chat, "http://127.0.0.1:11434/v1/chat/completions"),
            (
                Chat,
                "http://127.0.0.1:11434/v1",
                "/chat/completions",
                "http://127.0.0.1:11434/v1/chat/completions",
            ),
            (Chat, "https://api.z.ai/api/paas/v4", chat, "https://api.z.ai/api/paas/v4/chat/completions"),
            (Chat, "https://g.test/v1beta/openai/", chat, "https://g.test/v1beta/openai/chat/completions"),
            (
                Chat,
                "https://x.test/openai/v1?api-version=1",
                chat,
                "https://x.test/openai/v1/chat/completions?api-version=1",
            ),
            (Responses, "https://api.openai.com/v1", "/v1/responses", "https://api.openai.com/v1/responses"),
            (
                Gemini,
                "https://g.test",
                "/v1beta/models/m:streamGenerateContent?alt=sse",
                "https://g.test/v1beta/models/m:streamGenerateContent?alt=sse",
            ),
            (
                Gemini,
                "https://g.test/v1beta?x=1",
                "/v1beta/models/m:streamGenerateContent?alt=sse",
                "https://g.test/v1beta/models/m:streamGenerateContent?x=1&alt=sse",
            ),
        ];
        for (wire, base, path, expected) in cases {
            assert_eq!(join_url(wire, base, path), expected, "{wire} {base}");
        }
    }

    #[test]
    fn a_shown_url_has_nothing_secret() {
        let cases = [
            ("https://user:pass@host.test:8/v1/x?key=abc#frag", "https://host.test:8/v1/x"),
            ("https://host.test", "https://host.test"),
            ("http://a@b@host/p@q", "http://host/p@q"),
            ("nonsense?key=abc", "nonsense"),
        ];
        for (url, expected) in cases {
            assert_eq!(shown_url(url), expected);
        }
        assert_eq!(path_and_query("https://u:p@host:1/v1/x?alt=sse"), "/v1/x?alt=sse");
        assert_eq!(path_and_query("https://host"), "/");
    }

    #[test]
    fn loopback_by_name() {
        for host in ["localhost", "LOCALHOST", "127.0.0.1", "127.8.9.1", "[::1]", "::1"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["localhost.example.com", "10.0.0.1", "", "[::2]"] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
