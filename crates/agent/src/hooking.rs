use crate::finished::Finished;
use crate::hooks::PreTool;
use crate::runner::Ready;
use crate::turn::Worker;
use crate::*;
use journeyman_model::ModelRequest;
use journeyman_protocol::Message;
use tokio_util::sync::CancellationToken;
pub(crate) struct Looked {
    pub context: Vec<String>,
    pub input: Option<serde_json::Value>,
    pub decision: PreTool,
}
impl Worker {
    pub(crate) async fn pre_tool(&mut self, _: &Ready, _: &CancellationToken) -> Looked {
        Looked { context: vec![], input: None, decision: PreTool::Go }
    }
    pub(crate) async fn post_tool(&mut self, _: &Ready, _: &mut Finished) -> Vec<String> {
        vec![]
    }
    pub(crate) async fn pre_model(
        &mut self,
        _: &mut ModelRequest,
        _: &CancellationToken,
    ) -> Option<Vec<Message>> {
        None
    }
    pub(crate) async fn post_model(&mut self, _: &mut Message) {}
    pub(crate) async fn post_append(&mut self) {}
    pub(crate) async fn sent_back(&mut self, _: &CancellationToken) -> Result<bool, AgentError> {
        Ok(false)
    }
    pub(crate) async fn session_start_once(&mut self, _: &str) -> Result<Vec<String>, AgentError> {
        Ok(vec![])
    }
    pub(crate) async fn session_end(&mut self) {}
}
