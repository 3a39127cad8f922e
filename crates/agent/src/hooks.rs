//! stub
use journeyman_protocol::CallId;
/// stub
#[derive(Clone, Default)]
pub struct Hooks;
pub(crate) enum PreTool {
    Go,
    Approve { reason: String },
    Ask { reason: String },
    Deny { reason: String },
    Result { text: String, is_error: bool },
}
