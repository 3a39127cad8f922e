//! The request to the model: the first context, the tools on offer, and calls written as text.

pub(crate) mod apply_edit;
pub(crate) mod lookup;
pub(crate) mod text_protocol;
