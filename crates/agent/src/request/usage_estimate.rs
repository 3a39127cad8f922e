//! Estimates the usage of a reply that was cut off before the provider reported it.

use journeyman_model::ModelRequest;
use journeyman_protocol::{Message, Tokens, Usage};

use super::input_meter::InputMeter;

/// Completes the reported usage of a reply that was cut off: most protocols report it only at the
/// end. `dropped` counts what of the reply isn't kept.
pub(crate) fn estimate_usage(
    reported: Usage,
    request: &ModelRequest,
    reply: &Message,
    dropped: Tokens,
    meter: &mut InputMeter,
) -> Usage {
    let mut usage = reported;
    if usage.total_input().is_zero() {
        let counted = meter.count(request).total();
        usage.input = meter.estimate(counted);
        usage.estimated += usage.input;
    }
    // Some protocols report the output of the first piece only.
    let kept: Tokens = reply.content.iter().map(|block| meter.counter().count_block(block)).sum();
    let output = kept + dropped;
    if output > usage.output {
        usage.output = output;
        usage.estimated += output;
    }
    usage
}

#[cfg(test)]
mod tests {
    use journeyman_protocol::ModelLimits;

    use super::*;

    #[test]
    fn what_the_provider_reported_is_not_estimated() {
        let request =
            ModelRequest { messages: vec![Message::user_text("one two three")], ..ModelRequest::default() };
        let reply = Message::assistant_text("four five");
        let mut meter = InputMeter::new(ModelLimits::conservative_default(false));
        let estimated = estimate_usage(Usage::default(), &request, &reply, Tokens(0), &mut meter);
        assert!(estimated.input.0 >= 3 && estimated.output.0 >= 2, "{estimated:?}");
        let more = estimate_usage(Usage::default(), &request, &reply, Tokens(40), &mut meter);
        assert_eq!(more.output, estimated.output + Tokens(40));
        assert_eq!(estimated.estimated, estimated.input + estimated.output);
        let reported = Usage { cache_read: Tokens(70), output: Tokens(1), ..Usage::default() };
        let usage = estimate_usage(reported, &request, &reply, Tokens(0), &mut meter);
        let expected = Usage { output: estimated.output, estimated: estimated.output, ..reported };
        assert_eq!(usage, expected);
        let whole = Usage { output: Tokens(1_000), ..reported };
        assert_eq!(estimate_usage(whole, &request, &reply, Tokens(0), &mut meter), whole);
    }
}
