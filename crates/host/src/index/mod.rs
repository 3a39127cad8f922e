//! Questions to the index of a project, for people and programs.

mod answers;
mod context;
mod dependencies;
mod explain;
mod follow;
mod graph;
mod impact;
mod lines;
mod map;
mod open;
mod path;
mod project_symbols;
mod search;
mod summary;
mod symbols;
mod vectors;

pub use answers::{
    AffectedFile, ContextAnswer, ContextPlanItem, CountedSignal, DepsAnswer, EdgeReason, FileSymbolEntry,
    FoundCycle, FoundDefinition, FoundFile, FoundLine, FoundPassage, FoundSection, ImpactAnswer,
    LinkedSection, LinkedSymbol, MapAnswer, MeasuredSignal, NameUse, NamedDefinition, NeighbourFile,
    PathStep, RefsAnswer, SearchAnswer, SectionLines, SymbolsAnswer, TextLine, WhyAnswer,
};
pub use context::{ContextPlan, PlannedTask};
pub use dependencies::{Dependencies, DependencyPath, cycles_to_answer, find_cycles};
pub use explain::{Explanation, SignalStrength};
pub use follow::{describe_watch_event, follow_files, watch_event_to_json};
pub use graph::{ChangeSet, CodeGraph};
pub use impact::Impact;
pub use map::ProjectMap;
pub use open::{CodeIndex, index_threads, open_index, refresh_index};
pub use project_symbols::ProjectSymbol;
pub(crate) use project_symbols::list_symbols;
pub use search::{FoundResults, SearchKind, SearchOptions, SearchResults};
pub use summary::{IndexSummary, rebuild_index};
pub use symbols::{FileSymbol, FileSymbols, References, SymbolLink, no_symbols_reason, shown_path};
pub use vectors::{EmbeddedIndex, open_embedded_index};
