//! Documents that a person may look up beside the conversation: agents, the plan, permissions.

use journeyman_host::HostError;
use journeyman_host::agents::{AgentTrust, load_agents};
use journeyman_host::format::printable;
use journeyman_host::plans::load_plan;
use journeyman_host::policy_check::{PolicyOverview, describe_overview};
use journeyman_terminal::{Style, StyledLine};

use crate::app::App;

impl App {
    pub(crate) fn show_agents(&mut self) -> Result<(), HostError> {
        let (environment, root) = (&self.setup.environment, &self.setup.root);
        // Listing runs nothing, so nobody is asked.
        let loaded = match load_agents(environment, root, &AgentTrust::default()) {
            Ok(loaded) => loaded,
            Err(error) => {
                self.notice = Some(error.to_string());
                return Ok(());
            }
        };
        let mut lines = Vec::new();
        for agent in &loaded.agents {
            let name = StyledLine::new(Style::Strong, agent.definition.name.clone());
            lines.push(name.with(Style::Dim, format!("  {}", printable(&agent.describe_source()))));
            lines.push(
                StyledLine::default().with_text(format!("  {}", printable(&agent.definition.description))),
            );
        }
        lines.extend(
            loaded
                .problems
                .iter()
                .cloned()
                .chain(loaded.ignored_fields_notices())
                .map(|problem| StyledLine::new(Style::Warning, printable(&problem))),
        );
        self.show_document("agents", lines)
    }

    pub(crate) async fn show_plan(&mut self) -> Result<(), HostError> {
        let Some(session) = self.open_session.as_ref().map(|open| open.session.id().clone()) else {
            self.notice = Some("there is no session yet".to_owned());
            return Ok(());
        };
        match load_plan(&self.setup.state, &session).await? {
            None => {
                self.notice =
                    Some("no task of this session was planned; jm plan \"TASK\" plans one".to_owned())
            }
            Some(plan) => {
                let line = |line: &str| StyledLine::default().with_text(printable(&line));
                self.show_document("plan", plan.to_string().lines().map(line).collect())?;
            }
        }
        Ok(())
    }

    pub(crate) fn show_permissions(&mut self) -> Result<(), HostError> {
        let overview = match PolicyOverview::load(&self.setup.environment, &self.setup.root) {
            Ok(overview) => overview,
            Err(error) => {
                self.notice = Some(error.to_string());
                return Ok(());
            }
        };
        self.show_document("permissions", describe_overview(&overview))
    }
}
