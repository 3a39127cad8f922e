//! Sections of a text that share a budget.

use std::collections::VecDeque;

use journeyman_protocol::{TokenCounter, Tokens};

/// Tokens of the line that says how many items are missing.
const OMISSION_LINE_TOKENS: u64 = 10;

/// A section: a heading and its items, oldest first.
pub(super) struct Section {
    pub(super) heading: &'static str,
    pub(super) items: Vec<SectionItem>,
    /// The section's share of the budget, in hundredths.
    pub(super) share: u64,
}

/// An item of a section.
pub(super) struct SectionItem {
    pub(super) text: String,
    /// Items of a higher rank are chosen first.
    pub(super) rank: u8,
}

impl SectionItem {
    /// Returns the item as it is shown: one paragraph, in which a continued line is indented.
    fn render(&self) -> String {
        format!("- {}\n", self.text.trim().replace('\n', "\n  "))
    }
}

impl Section {
    pub(super) fn new(heading: &'static str, share: u64, items: impl IntoIterator<Item = String>) -> Self {
        Self { heading, share, items: items.into_iter().map(|text| SectionItem { text, rank: 0 }).collect() }
    }
}

/// Divides a budget: each need is met up to its share, and what is left over goes to the needs
/// that are open, in order. Shares of more than the whole together become smaller alike.
pub(super) fn divide_budget(needs: &[u64], shares: &[u64], total: u64) -> Vec<u64> {
    let open = needs.iter().zip(shares).filter(|(need, _)| **need > 0);
    let all = open.map(|(_, share)| *share).sum::<u64>().max(100);
    let mut given: Vec<u64> =
        needs.iter().zip(shares).map(|(need, share)| (*need).min(total * share / all)).collect();
    let mut left = total.saturating_sub(given.iter().sum());
    for (given, need) in given.iter_mut().zip(needs) {
        let more = need.saturating_sub(*given).min(left);
        *given += more;
        left -= more;
    }
    given
}

/// Renders sections within a budget. Empty sections are left out.
pub(super) fn render_sections(sections: &[Section], budget: Tokens, counter: &dyn TokenCounter) -> String {
    let costs: Vec<Vec<u64>> = sections
        .iter()
        .map(|section| section.items.iter().map(|item| counter.count(&item.render()).0).collect())
        .collect();
    let heading = |section: &Section| counter.count(section.heading).0 + 2;
    let mut needs: Vec<u64> = sections
        .iter()
        .zip(&costs)
        .map(
            |(section, costs)| {
                if costs.is_empty() { 0 } else { heading(section) + costs.iter().sum::<u64>() }
            },
        )
        .collect();
    let shares: Vec<u64> = sections.iter().map(|section| section.share).collect();
    let choose_within = |needs: &[u64]| -> Vec<Vec<bool>> {
        let given = divide_budget(needs, &shares, budget.0);
        let parts = sections.iter().zip(&costs).zip(needs.iter().zip(given));
        let chosen = parts.map(|((section, costs), (need, given))| {
            let note = if given < *need { OMISSION_LINE_TOKENS } else { 0 };
            choose_items(&section.items, costs, given.saturating_sub(heading(section) + note))
        });
        chosen.collect()
    };
    let mut chosen = choose_within(&needs);
    // A section of which nothing fits leaves its part to the others.
    loop {
        let is_in_vain = |(need, chosen): (&u64, &Vec<bool>)| *need > 0 && !chosen.contains(&true);
        let Some(at) = needs.iter().zip(&chosen).position(is_in_vain) else { break };
        if let Some(need) = needs.get_mut(at) {
            *need = 0;
        }
        chosen = choose_within(&needs);
    }
    let mut out = String::new();
    for (section, chosen) in sections.iter().zip(chosen) {
        let count = chosen.iter().filter(|is_chosen| **is_chosen).count();
        if count == 0 {
            continue;
        }
        out.push_str(section.heading);
        out.push('\n');
        for item in
            section.items.iter().zip(&chosen).filter_map(|(item, is_chosen)| is_chosen.then_some(item))
        {
            out.push_str(&item.render());
        }
        let missing = section.items.len() - count;
        if missing > 0 {
            out.push_str(&format!("- (and {missing} more, in the log)\n"));
        }
    }
    out
}

/// Chooses items by rank; the result tells for each item if it is chosen. Within a rank the newest
/// and the oldest take turns: the newest matter for the next step, and the oldest are those that
/// nothing later repeats.
fn choose_items(items: &[SectionItem], costs: &[u64], budget: u64) -> Vec<bool> {
    let mut ranks: Vec<u8> = items.iter().map(|item| item.rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let (mut left, mut chosen) = (budget, vec![false; items.len()]);
    for rank in ranks.into_iter().rev() {
        let of_rank = items.iter().zip(costs).zip(&mut chosen).filter(|((item, _), _)| item.rank == rank);
        let mut waiting: VecDeque<(u64, &mut bool)> =
            of_rank.map(|((_, cost), is_chosen)| (*cost, is_chosen)).collect();
        let mut newest = true;
        while let Some((cost, is_chosen)) = if newest { waiting.pop_back() } else { waiting.pop_front() } {
            newest = !newest;
            if let Some(rest) = left.checked_sub(cost) {
                left = rest;
                *is_chosen = true;
            }
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TokenEstimator;

    #[test]
    fn unused_shares_are_lent_on() {
        assert_eq!(divide_budget(&[10, 500, 0], &[50, 25, 25], 100), [10, 90, 0]);
        assert_eq!(divide_budget(&[500, 500, 500], &[50, 25, 25], 100), [50, 25, 25]);
        assert_eq!(divide_budget(&[1, 1], &[50, 50], 0), [0, 0]);
        assert_eq!(divide_budget(&[500, 500, 0], &[90, 60, 50], 100), [60, 40, 0], "no more than there is");
    }

    #[test]
    fn a_section_keeps_its_oldest_and_newest_items() {
        let items = (0..100).map(|number| format!("item number {number} of a list"));
        let text = render_sections(&[Section::new("Items:", 100, items)], Tokens(90), &TokenEstimator);
        assert!(text.starts_with("Items:\n- item number 0 ") && text.contains("- item number 99 "), "{text}");
        assert!(!text.contains("number 50 ") && text.contains(" more, in the log)"), "{text}");
        assert!(TokenEstimator.count(&text) <= Tokens(110), "{text}");
    }

    #[test]
    fn a_section_of_which_nothing_fits_takes_no_room() {
        let section = |heading, share, text: String| Section::new(heading, share, [text]);
        let fits = || section("Facts:", 20, "one two three four five six seven eight nine ten".to_owned());
        let alone = render_sections(&[fits()], Tokens(40), &TokenEstimator);
        assert!(alone.starts_with("Facts:\n- one two"), "{alone}");
        let beside = render_sections(
            &[section("Summary:", 80, "word ".repeat(400)), fits()],
            Tokens(40),
            &TokenEstimator,
        );
        assert_eq!(beside, alone);
    }

    #[test]
    fn a_higher_rank_goes_first() {
        let item = |rank, text: &str| SectionItem { text: text.to_owned(), rank };
        let items = vec![item(0, "one two three"), item(1, "four five six"), item(0, "seven eight nine")];
        assert_eq!(choose_items(&items, &[6, 6, 6], 12), [false, true, true]);
    }
}
