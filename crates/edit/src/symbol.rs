//! Edits that name a symbol.

use journeyman_protocol::RelPath;

use crate::change::SymbolEdit;
use crate::outcome::{Placed, Refusal};

/// Finds the symbol and what becomes of it.
pub(crate) fn find(_path: &RelPath, _text: &str, wish: &SymbolEdit) -> Result<Placed, Refusal> {
    Err(Refusal::Symbol { symbol: wish.symbol.clone(), candidates: Vec::new(), ambiguous: false })
}
