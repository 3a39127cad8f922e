//! Which lines two texts have in common: a smallest difference, in bounded time.
//!
//! Lines become numbers, equal ones the same. What both texts begin and end with is set aside, and so are lines that
//! only one of them has; the rest is compared by Myers' algorithm in linear space (E. Myers, «An O(ND) difference
//! algorithm and its variations», 1986). A run of changed lines can often slide, as in `{ a } { a }`; it comes to
//! lie where the other text has one too, else as far down as it goes, as in git: so both sides of a merge speak of
//! the same place.
//!
//! Time is counted in steps, not by a clock: the same texts always give the same answer.

use std::collections::HashMap;
use std::ops::Range;

/// A run of lines that one text has in the place of another's. One of both may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) old: Range<usize>,
    pub(crate) new: Range<usize>,
}

/// A text cut into lines, each with its end.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    bytes: &'a [u8],
    /// Where each line begins, and where the last one ends.
    starts: Vec<usize>,
    ids: Vec<u32>,
}

/// Gives equal lines of several texts the same number.
#[derive(Debug, Default)]
pub(crate) struct Numbering<'a> {
    known: HashMap<&'a [u8], u32>,
}

impl<'a> Numbering<'a> {
    /// Cuts a text into lines and numbers them.
    pub(crate) fn lines(&mut self, bytes: &'a [u8]) -> Lines<'a> {
        let mut lines = Lines { bytes, starts: vec![0], ids: Vec::new() };
        let mut at = 0;
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            let next = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
            lines.ids.push(*self.known.entry(line).or_insert(next));
            at += line.len();
            lines.starts.push(at);
        }
        lines
    }
}

impl<'a> Lines<'a> {
    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.ids.len()
    }

    /// The bytes of these lines.
    pub(crate) fn text(&self, lines: Range<usize>) -> &'a [u8] {
        let place = |line: usize| self.starts.get(line).copied().unwrap_or(self.bytes.len());
        self.bytes.get(place(lines.start)..place(lines.end)).unwrap_or_default()
    }
}

/// The smallest edits that make `new` of `old`, in order; no two of them touch. `None` when finding them would take
/// more than `steps`.
pub(crate) fn edits(old: &Lines<'_>, new: &Lines<'_>, steps: u64) -> Option<Vec<Edit>> {
    let mut budget = Budget(steps);
    let (mut gone, mut made) = changed(&old.ids, &new.ids, &mut budget)?;
    slide(&old.ids, &mut gone, &runs(&made), &mut budget)?;
    slide(&new.ids, &mut made, &runs(&gone), &mut budget)?;
    Some(paired(&gone, &made))
}

/// Steps that are left.
struct Budget(u64);

impl Budget {
    fn spend(&mut self, steps: usize) -> Option<()> {
        self.0 = self.0.checked_sub(steps as u64)?;
        Some(())
    }
}

/// The lines of each text that have no partner in the other.
fn changed(old: &[u32], new: &[u32], budget: &mut Budget) -> Option<(Vec<bool>, Vec<bool>)> {
    let (mut gone, mut made) = (vec![false; old.len()], vec![false; new.len()]);
    let front = common_front(old, new);
    let back = common_front_of(
        old.get(front..).unwrap_or_default().iter().rev(),
        new.get(front..).unwrap_or_default().iter().rev(),
    );
    let middle = |ids: &[u32]| front..ids.len().saturating_sub(back);
    let one = candidates(old, middle(old), new, middle(new), &mut gone);
    let other = candidates(new, middle(new), old, middle(old), &mut made);
    let ids = |places: &[usize], ids: &[u32]| -> Vec<u32> {
        places.iter().filter_map(|place| ids.get(*place).copied()).collect()
    };
    let (one_ids, other_ids) = (ids(&one, old), ids(&other, new));
    let mut search = Search::new(&one_ids, &other_ids);
    search.run(budget)?;
    for (places, flags, marks) in [(&one, &mut gone, &search.gone), (&other, &mut made, &search.made)] {
        for (place, _) in places.iter().zip(marks).filter(|(_, mark)| **mark) {
            if let Some(flag) = flags.get_mut(*place) {
                *flag = true;
            }
        }
    }
    Some((gone, made))
}

fn common_front(one: &[u32], other: &[u32]) -> usize {
    common_front_of(one.iter(), other.iter())
}

fn common_front_of<'a>(one: impl Iterator<Item = &'a u32>, other: impl Iterator<Item = &'a u32>) -> usize {
    one.zip(other).take_while(|(one, other)| one == other).count()
}

/// The lines of `within` that the other text's part has too; the others are marked as changed.
fn candidates(
    ids: &[u32],
    within: Range<usize>,
    other: &[u32],
    other_within: Range<usize>,
    changed: &mut [bool],
) -> Vec<usize> {
    let there: std::collections::HashSet<&u32> = other.get(other_within).unwrap_or_default().iter().collect();
    let mut places = Vec::new();
    for place in within {
        if ids.get(place).is_some_and(|id| there.contains(id)) {
            places.push(place);
        } else if let Some(flag) = changed.get_mut(place) {
            *flag = true;
        }
    }
    places
}

/// How far each diagonal was followed; nothing is known of most of them.
struct Reach {
    furthest: Vec<Option<usize>>,
    offset: isize,
}

impl Reach {
    fn new(old: usize, new: usize) -> Self {
        // One more on either side, so that neighbours are always there to be asked.
        let offset = isize::try_from(new).unwrap_or(isize::MAX - 1).saturating_add(1);
        Self { furthest: vec![None; old.saturating_add(new).saturating_add(3)], offset }
    }

    fn place(&self, diagonal: isize) -> Option<usize> {
        usize::try_from(diagonal.checked_add(self.offset)?).ok()
    }

    fn get(&self, diagonal: isize) -> Option<usize> {
        self.furthest.get(self.place(diagonal)?).copied().flatten()
    }

    fn set(&mut self, diagonal: isize, x: Option<usize>) {
        if let Some(slot) = self.place(diagonal).and_then(|place| self.furthest.get_mut(place)) {
            *slot = x;
        }
    }

    /// The furthest point on a diagonal that one more edit leads to, in a rectangle of `old` by `new`.
    fn step(&self, diagonal: isize, old: usize, new: usize) -> Option<usize> {
        let right = self.get(diagonal - 1).map(|x| x + 1).filter(|x| *x <= old);
        let down = self.get(diagonal + 1).filter(|x| y_of(*x, diagonal).is_some_and(|y| y <= new));
        right.max(down)
    }
}

fn y_of(x: usize, diagonal: isize) -> Option<usize> {
    x.checked_add_signed(diagonal.checked_neg()?)
}

/// The part of both texts that is still to be compared.
#[derive(Debug, Clone)]
struct Rectangle {
    old: Range<usize>,
    new: Range<usize>,
}

struct Search<'a> {
    old: &'a [u32],
    new: &'a [u32],
    gone: Vec<bool>,
    made: Vec<bool>,
    forward: Reach,
    backward: Reach,
}

impl<'a> Search<'a> {
    fn new(old: &'a [u32], new: &'a [u32]) -> Self {
        Self {
            old,
            new,
            gone: vec![false; old.len()],
            made: vec![false; new.len()],
            forward: Reach::new(old.len(), new.len()),
            backward: Reach::new(old.len(), new.len()),
        }
    }

    fn run(&mut self, budget: &mut Budget) -> Option<()> {
        let mut open = vec![Rectangle { old: 0..self.old.len(), new: 0..self.new.len() }];
        while let Some(Rectangle { mut old, mut new }) = open.pop() {
            while !old.is_empty() && !new.is_empty() && self.old.get(old.start) == self.new.get(new.start) {
                old.start += 1;
                new.start += 1;
            }
            while !old.is_empty() && !new.is_empty() && self.old.get(old.end - 1) == self.new.get(new.end - 1)
            {
                old.end -= 1;
                new.end -= 1;
            }
            if old.is_empty() || new.is_empty() {
                self.gone.get_mut(old).unwrap_or_default().fill(true);
                self.made.get_mut(new).unwrap_or_default().fill(true);
                continue;
            }
            let (x, y) = self.middle(&old, &new, budget)?;
            open.push(Rectangle { old: old.start + x..old.end, new: new.start + y..new.end });
            open.push(Rectangle { old: old.start..old.start + x, new: new.start..new.start + y });
        }
        Some(())
    }

    /// A point that a shortest way through the rectangle passes, about half of its edits before it.
    fn middle(
        &mut self,
        old: &Range<usize>,
        new: &Range<usize>,
        budget: &mut Budget,
    ) -> Option<(usize, usize)> {
        let (one, other) = (self.old.get(old.clone())?, self.new.get(new.clone())?);
        let (n, m) = (one.len(), other.len());
        let (width, height) = (isize::try_from(n).ok()?, isize::try_from(m).ok()?);
        let delta = width - height;
        let odd = delta % 2 != 0;
        let diagonals = |edits: isize, left: isize, right: isize| {
            let parity = |bound: isize| bound - (edits - bound).rem_euclid(2);
            (-parity(edits.min(left))..=parity(edits.min(right))).step_by(2)
        };
        for diagonal in -height - 1..=width + 1 {
            self.forward.set(diagonal, None);
        }
        for diagonal in -height - 1..=width + 1 {
            self.backward.set(diagonal, None);
        }
        budget.spend(n + m)?;
        for edits in 0..=width + height {
            for diagonal in diagonals(edits, height, width) {
                let start = if edits == 0 { Some(0) } else { self.forward.step(diagonal, n, m) };
                let end = start.and_then(|x| {
                    let (front, back) = (one.get(x..)?, other.get(y_of(x, diagonal)?..)?);
                    Some(x + common_front(front, back))
                });
                budget.spend(
                    1 + end.unwrap_or_default() - start.unwrap_or_default().min(end.unwrap_or_default()),
                )?;
                self.forward.set(diagonal, end);
                let Some(x) = end else { continue };
                if odd
                    && (delta - diagonal).abs() < edits
                    && self.backward.get(delta - diagonal).is_some_and(|back| x + back >= n)
                {
                    return Some((x, y_of(x, diagonal)?));
                }
            }
            for diagonal in diagonals(edits, height, width) {
                let start = if edits == 0 { Some(0) } else { self.backward.step(diagonal, n, m) };
                let end = start.and_then(|x| {
                    let front = one.get(..n.checked_sub(x)?)?;
                    let back = other.get(..m.checked_sub(y_of(x, diagonal)?)?)?;
                    Some(x + common_front_of(front.iter().rev(), back.iter().rev()))
                });
                budget.spend(
                    1 + end.unwrap_or_default() - start.unwrap_or_default().min(end.unwrap_or_default()),
                )?;
                self.backward.set(diagonal, end);
                let Some(x) = end else { continue };
                if !odd
                    && (delta - diagonal).abs() <= edits
                    && self.forward.get(delta - diagonal).is_some_and(|front| front + x >= n)
                {
                    return Some((n.checked_sub(x)?, m.checked_sub(y_of(x, diagonal)?)?));
                }
            }
        }
        None
    }
}

/// How many changed lines a text has before its first unchanged line, between it and the second, and so on.
fn runs(changed: &[bool]) -> Vec<usize> {
    let mut runs = vec![0];
    for changed in changed {
        match runs.last_mut() {
            Some(run) if *changed => *run += 1,
            _ => runs.push(0),
        }
    }
    runs
}

/// Moves each run of changed lines to where the other text has changes too, else as far down as it goes. Runs that
/// meet on the way become one. `others` are the other text's [`runs`].
fn slide(ids: &[u32], changed: &mut [bool], others: &[usize], budget: &mut Budget) -> Option<()> {
    let is_changed = |changed: &[bool], at: usize| changed.get(at).copied().unwrap_or_default();
    let has_other = |unchanged: usize| others.get(unchanged).is_some_and(|run| *run > 0);
    let (mut start, mut unchanged) = (0, 0);
    while start < ids.len() {
        if !is_changed(changed, start) {
            start += 1;
            unchanged += 1;
            continue;
        }
        let mut end = start;
        while is_changed(changed, end) {
            end += 1;
        }
        let mut aligned;
        loop {
            let size = end - start;
            while start > 0 && ids.get(start - 1) == ids.get(end - 1) {
                budget.spend(1)?;
                (start, end, unchanged) = (start - 1, end - 1, unchanged - 1);
                mark(changed, start, end);
                while start > 0 && is_changed(changed, start - 1) {
                    start -= 1;
                }
            }
            aligned = has_other(unchanged).then_some(end);
            while end < ids.len() && ids.get(start) == ids.get(end) {
                budget.spend(1)?;
                mark(changed, end, start);
                (start, end, unchanged) = (start + 1, end + 1, unchanged + 1);
                while is_changed(changed, end) {
                    end += 1;
                }
                if has_other(unchanged) {
                    aligned = Some(end);
                }
            }
            if end - start == size {
                break;
            }
        }
        while aligned.is_some_and(|aligned| end > aligned) {
            (start, end, unchanged) = (start - 1, end - 1, unchanged - 1);
            mark(changed, start, end);
        }
        start = end;
    }
    Some(())
}

fn mark(changed: &mut [bool], changed_now: usize, not_any_more: usize) {
    if let Some(flag) = changed.get_mut(not_any_more) {
        *flag = false;
    }
    if let Some(flag) = changed.get_mut(changed_now) {
        *flag = true;
    }
}

fn paired(gone: &[bool], made: &[bool]) -> Vec<Edit> {
    let run = |flags: &[bool], from: usize| {
        flags.get(from..).unwrap_or_default().iter().take_while(|flag| **flag).count()
    };
    let mut found = Vec::new();
    let (mut old, mut new) = (0, 0);
    loop {
        let (removed, added) = (run(gone, old), run(made, new));
        if removed + added > 0 {
            found.push(Edit { old: old..old + removed, new: new..new + added });
            (old, new) = (old + removed, new + added);
        }
        if old >= gone.len() || new >= made.len() {
            return found;
        }
        (old, new) = (old + 1, new + 1);
    }
}
