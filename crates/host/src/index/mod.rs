//! Questions to the index of a project, for people and programs.

mod answers;
mod context;
mod dependencies;
mod embedded;
mod explain;
mod follow;
mod graph;
mod impact;
mod lines;
mod map;
mod names;
mod open;
mod path;
mod search;
mod summary;
mod symbols;

pub use answers::{
    AffectedFile, ContextAnswer, CountedSignal, DepsAnswer, EdgeReason, FileSymbolEntry, FoundCycle,
    FoundDefinition, FoundFile, FoundLine, FoundPassage, FoundSection, ImpactAnswer, LinkedSection,
    LinkedSymbol, MapAnswer, MeasuredSignal, NameUse, NamedDefinition, NeighbourFile, PathStep, RefsAnswer,
    SearchAnswer, SectionLines, SymbolsAnswer, TextLine, WeighedItem, WhyAnswer,
};
pub use context::ContextPlan;
pub use dependencies::{Dependencies, DependencyPath, describe_cycles, find_cycles};
pub use embedded::{EmbeddedIndex, open_embedded};
pub use explain::{Explanation, SignalStrength};
pub use follow::{describe_watch_event, follow_files, watch_event_to_json};
pub use graph::{ChangeSet, CodeGraph};
pub use impact::Impact;
pub use map::ProjectMap;
pub use names::ProjectSymbol;
pub(crate) use names::list_symbols;
pub use open::{CodeIndex, index_threads, open_index, refresh_index};
pub use search::{FoundResults, SearchKind, SearchOptions, SearchResults};
pub use summary::{IndexSummary, rebuild_index};
pub use symbols::{FileSymbol, FileSymbols, References, SymbolLink, no_symbols_reason, shown_path};
