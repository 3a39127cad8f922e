//! Figures that are measured in turns, and what they are held against.

use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Milliseconds of each repetition.
pub(crate) type Series = Vec<f64>;

/// Processor time of this process and of those that it waited for, in milliseconds: where others
/// compete for the cores, it says more than the clock.
#[allow(unsafe_code)]
fn processor_time() -> f64 {
    let used = |whose| {
        // SAFETY: all-zero bytes are a valid `rusage`: it has only integers.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer is to a live `rusage`, which the call fills in.
        unsafe { libc::getrusage(whose, &raw mut usage) };
        #[allow(clippy::cast_precision_loss)]
        let time = |t: libc::timeval| t.tv_sec as f64 * 1e3 + t.tv_usec as f64 / 1e3;
        time(usage.ru_utime) + time(usage.ru_stime)
    };
    used(libc::RUSAGE_SELF) + used(libc::RUSAGE_CHILDREN)
}

/// How long `work` takes, in milliseconds.
pub(crate) fn time(work: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    work();
    milliseconds(begun.elapsed())
}

pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The value that so large a part of the series is below.
pub(crate) fn quantile(series: &[f64], part: f64) -> f64 {
    let mut sorted = series.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    let at = ((sorted.len().saturating_sub(1)) as f64 * part).round() as usize;
    sorted.get(at).copied().unwrap_or_default()
}

pub(crate) fn median(series: &[f64]) -> f64 {
    quantile(series, 0.5)
}

/// One way of doing something, and its repetitions.
pub(crate) struct Contender<'a> {
    name: &'a str,
    work: Box<dyn FnMut() -> f64 + 'a>,
    series: Series,
    /// Processor time, including what its preparation takes.
    cpu: Series,
}

impl<'a> Contender<'a> {
    /// `work` does it once and says how many milliseconds of that count.
    pub(crate) fn new(name: &'a str, work: impl FnMut() -> f64 + 'a) -> Self {
        Self { name, work: Box::new(work), series: Series::new(), cpu: Series::new() }
    }
}

/// Several ways of doing the same, each done once a round; who begins changes from round to round.
pub(crate) struct Contest<'a> {
    contenders: Vec<Contender<'a>>,
}

impl<'a> Contest<'a> {
    pub(crate) fn run(rounds: usize, mut contenders: Vec<Contender<'a>>) -> Self {
        // Once for caches and first allocations, uncounted.
        for round in 0..=rounds {
            let count = contenders.len();
            for at in 0..count {
                let contender = &mut contenders[(at + round) % count];
                let before = processor_time();
                let took = (contender.work)();
                if round > 0 {
                    contender.series.push(took);
                    contender.cpu.push(processor_time() - before);
                }
            }
        }
        for contender in &contenders {
            let series = &contender.series;
            println!(
                "    {:<50} {:>9.3} ms  ({:.3} to {:.3}), processor {:.3} ms",
                contender.name,
                median(series),
                quantile(series, 0.25),
                quantile(series, 0.75),
                median(&contender.cpu)
            );
        }
        // Rounds are paired by number, also between contenders that began at different places of
        // it.
        Self { contenders }
    }

    fn series(&self, name: &str) -> &Series {
        &self.contenders.iter().find(|contender| contender.name == name).unwrap().series
    }
}

/// What was held against a bound.
#[derive(Default)]
pub(crate) struct Verdicts {
    missed: Vec<String>,
}

impl Verdicts {
    /// Holds `ours`, as a multiple of `theirs`, against a bound.
    pub(crate) fn ratio(&mut self, contest: &Contest<'_>, ours: &str, theirs: &str, asked: f64) {
        let (mine, others) = (contest.series(ours), contest.series(theirs));
        let rounds: Series = mine.iter().zip(others).map(|(mine, other)| mine / other).collect();
        let ratio = median(mine) / median(others);
        self.weigh(&format!("{ours} / {theirs}"), ratio, quantile(&rounds, 0.25), asked, "x");
    }

    /// Holds a time against a bound, both in milliseconds.
    pub(crate) fn limit(&mut self, contest: &Contest<'_>, ours: &str, asked: f64) {
        let mine = contest.series(ours);
        self.weigh(ours, median(mine), quantile(mine, 0.25), asked, "ms");
    }

    fn weigh(&mut self, what: &str, figure: f64, low: f64, asked: f64, unit: &str) {
        let word = if figure <= asked {
            "holds"
        } else if low <= asked {
            "over, within noise"
        } else {
            self.missed.push(what.to_owned());
            "MISSED"
        };
        println!("  {what}: {figure:.2} {unit} (asked: {asked:.1} {unit}) {word}");
    }

    pub(crate) fn end(self) -> ExitCode {
        if self.missed.is_empty() {
            return ExitCode::SUCCESS;
        }
        println!("missed: {}", self.missed.join("; "));
        ExitCode::FAILURE
    }
}
