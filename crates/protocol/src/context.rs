//! Categories of the content of a request.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Tokens;

/// A category of the content of a request. Each has a share of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContextCategory {
    /// The system prompt.
    System,
    /// The schemas of the tools.
    Tools,
    /// The task, as the user wrote it, and what it says of the environment.
    Task,
    /// Instructions of the user and of the project.
    Instructions,
    /// Checks that failed before the task, on the files as they are.
    Diagnostics,
    /// Files that the task names.
    ActiveFiles,
    /// Code that is found for the task: passages, definitions, users.
    RelatedCode,
    /// The repository map and the outlines of files.
    Symbols,
    /// Tests of the code that is found.
    Tests,
    /// Sections of documents.
    Docs,
    /// Commits that changed the code that is found.
    History,
    /// Messages of the conversation, with the results of tools.
    Conversation,
    /// Room that is kept for the reply.
    Generation,
}

impl ContextCategory {
    /// All categories, in the order in which they are shown.
    pub const ALL: [Self; 13] = [
        Self::System,
        Self::Tools,
        Self::Task,
        Self::Instructions,
        Self::Diagnostics,
        Self::ActiveFiles,
        Self::RelatedCode,
        Self::Symbols,
        Self::Tests,
        Self::Docs,
        Self::History,
        Self::Conversation,
        Self::Generation,
    ];

    /// Returns the order in which the parts of the first request get room: 0 for what is always in.
    /// Of what an index finds, code, tests and documents, each has its share, and the rest goes by
    /// relevance.
    #[must_use]
    pub fn priority(self) -> u8 {
        match self {
            Self::System | Self::Tools | Self::Task | Self::Conversation | Self::Generation => 0,
            Self::Instructions => 1,
            Self::Diagnostics => 2,
            Self::Symbols => 3,
            Self::ActiveFiles => 4,
            Self::History => 5,
            Self::RelatedCode | Self::Tests | Self::Docs => 6,
        }
    }

    /// Returns the category's name, for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system prompt",
            Self::Tools => "tools",
            Self::Task => "task",
            Self::Instructions => "instructions",
            Self::Diagnostics => "failed checks",
            Self::ActiveFiles => "named files",
            Self::RelatedCode => "related code",
            Self::Symbols => "map and outlines",
            Self::Tests => "tests",
            Self::Docs => "documents",
            Self::History => "history",
            Self::Conversation => "conversation",
            Self::Generation => "kept for the reply",
        }
    }
}

/// The use of a category's share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContextShare {
    /// The category.
    pub category: ContextCategory,
    /// Tokens that it has, estimated.
    pub tokens: Tokens,
    /// Tokens that its share allows. What a category leaves is lent to the others.
    pub budget: Tokens,
}
