//! Finds the hosts in arguments.

use journeyman_syntax::shell::Word;

use super::options::operands_if_known;

/// Programs whose operands are hosts, or begin with hosts.
const HOST_OPERAND_PROGRAMS: &[&str] = &[
    "ssh",
    "sftp",
    "ftp",
    "telnet",
    "nc",
    "ncat",
    "netcat",
    "ping",
    "dig",
    "host",
    "nslookup",
    "whois",
    "traceroute",
    "mosh",
    "nmap",
];
/// Programs whose operands may be URLs without a scheme.
const URL_PROGRAMS: &[&str] = &["curl", "wget", "http", "https", "xh", "aria2c"];
/// Programs whose operands may be `host:path`.
const REMOTE_PATH_PROGRAMS: &[&str] = &["scp", "rsync", "git"];
/// Maximum number of hosts of one part.
const MAX_HOSTS: usize = 16;

/// Returns the hosts in the words after `program`, in lower case and without duplicates.
pub(super) fn find_hosts(program: &str, words: &[Word]) -> Vec<String> {
    let mut hosts: Vec<String> = Vec::new();
    for word in words.iter().skip(1).filter(|word| word.known) {
        if let Some(host) = parse_host(program, &word.text)
            && !hosts.contains(&host)
            && hosts.len() < MAX_HOSTS
        {
            hosts.push(host);
        }
    }
    hosts
}

/// Returns true if `curl` with these words connects only to this machine, which in the sandbox is
/// its own loopback network.
pub(super) fn is_loopback_request(program: &str, words: &[Word]) -> bool {
    const CURL_LONG_OPTIONS: &[&str] = &[
        "data=",
        "fail",
        "head",
        "header=",
        "include",
        "json=",
        "max-time=",
        "request=",
        "retry=",
        "show-error",
        "silent",
        "verbose",
        "write-out=",
    ];
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~:/?&=%+,".contains(c);
    let local = |text: &&str| {
        text.chars().all(plain)
            && parse_host(program, text).is_some_and(|host| {
                let address = host.parse::<std::net::Ipv4Addr>();
                host == "localhost" || address.is_ok_and(|address| address.is_loopback())
            })
    };
    if program != "curl" || !words.iter().all(|word| word.known && !word.dialect) {
        return false;
    }
    let mut texts: Vec<&str> = words.iter().skip(1).map(|word| word.text.as_str()).collect();
    if let Some(at) = texts.windows(2).position(|pair| pair == ["-o", "/dev/null"]) {
        texts.drain(at..at + 2);
    }
    operands_if_known(&texts, "sSfiIv", "XHdmw", &[CURL_LONG_OPTIONS])
        .is_some_and(|operands| !operands.is_empty() && operands.iter().all(local))
}

fn parse_host(program: &str, text: &str) -> Option<String> {
    let text = match text.strip_prefix('-') {
        // `--url=https://…`
        Some(option) => {
            option.split_once('=').map(|(_, value)| value).filter(|value| value.contains("://"))?
        }
        None => text,
    };
    let authority = match text.split_once("://") {
        Some((scheme, rest)) => {
            if scheme.is_empty() || !scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+.-".contains(&b))
            {
                return None;
            }
            rest.split(['/', '?', '#']).next()?
        }
        None if REMOTE_PATH_PROGRAMS.contains(&program) => {
            let (host, _) = text.split_once(':')?;
            if host.contains('/') || (program == "git" && !host.contains('@')) {
                return None;
            }
            host
        }
        None if HOST_OPERAND_PROGRAMS.contains(&program) => text,
        None if URL_PROGRAMS.contains(&program) => text.split(['/', '?', '#']).next()?,
        None => return None,
    };
    let authority = authority.rsplit('@').next()?;
    let host = match authority.strip_prefix('[') {
        Some(literal) => literal.split(']').next()?,
        None => authority.split(':').next()?,
    };
    // `localhost` is a host; other words without a dot are more often subcommands or files.
    let plain = host.contains('.')
        || host.contains(':')
        || host == "localhost"
        || text.contains("://")
        || program == "ssh"
        || REMOTE_PATH_PROGRAMS.contains(&program);
    let named =
        plain && !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b".-:_".contains(&b));
    named.then(|| host.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table() {
        let cases: &[(&str, &[&str], &[&str])] = &[
            ("curl", &["-s", "https://user:pw@Example.com:8443/a?b"], &["example.com"]),
            ("curl", &["example.com/x", "--url=http://b.example"], &["example.com", "b.example"]),
            ("wget", &["http://[::1]:80/"], &["::1"]),
            ("git", &["clone", "git@github.com:a/b.git"], &["github.com"]),
            ("git", &["log", "HEAD:src/lib.rs"], &[]),
            ("scp", &["a", "host:b"], &["host"]),
            ("ssh", &["me@host", "ls"], &["host", "ls"]),
            ("ls", &["a.example"], &[]),
            ("npm", &["ci", "--registry=https://r.example/"], &["r.example"]),
        ];
        for (program, arguments, expected) in cases {
            let words: Vec<Word> =
                std::iter::once(program).chain(arguments.iter()).map(|word| Word::literal(*word)).collect();
            assert_eq!(find_hosts(program, &words), *expected, "{program} {arguments:?}");
        }
    }
}
