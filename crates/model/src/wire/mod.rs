//! The four wire protocols, each a [`Codec`](crate::codec::Codec).

mod anthropic;
mod chat;
mod gemini;
mod responses;

use crate::Wire;
use crate::codec::Codec;

/// The codec of a protocol.
pub(crate) fn codec(wire: Wire) -> Box<dyn Codec> {
    match wire {
        Wire::Anthropic => Box::new(anthropic::Anthropic),
        Wire::Responses => Box::new(responses::Responses),
        Wire::Chat => Box::new(chat::Chat),
        Wire::Gemini => Box::new(gemini::Gemini),
    }
}
