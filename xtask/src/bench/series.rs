//! One figure of one program or of two that are measured in turns.

/// The values of a figure by program; the first program is the one of this tree.
pub(crate) struct Series(Vec<Vec<f64>>);

impl Series {
    pub(crate) fn new(programs: usize) -> Self {
        Self(vec![Vec::new(); programs])
    }

    /// Adds a value of the program with this number.
    pub(crate) fn add(&mut self, program: usize, value: f64) {
        if let Some(values) = self.0.get_mut(program) {
            values.push(value);
        }
    }

    /// Prints the spread of each program's values and, where there are two, the ratio of their
    /// medians.
    pub(crate) fn print(&mut self, figure: &str, asked: &str) {
        let mut medians = Vec::new();
        for (number, values) in self.0.iter_mut().enumerate() {
            let bound =
                if number == 0 { format!("(asked: {asked})") } else { "(the build beside)".to_owned() };
            println!("  {figure}: {} {bound}", spread(values));
            medians.push(median(values));
        }
        if let [ours, beside] = medians[..] {
            println!("  {figure}: {:.3} times the build beside", ours / beside);
        }
    }
}

/// Minimum, median and maximum of some figures, which are sorted by it.
pub(crate) fn spread(figures: &mut [f64]) -> String {
    figures.sort_by(f64::total_cmp);
    let at = |place: usize| figures.get(place).copied().unwrap_or_default();
    format!("min {:.2}, median {:.2}, max {:.2}", at(0), median(figures), at(figures.len().saturating_sub(1)))
}

/// The median of sorted figures; 0 of none.
fn median(figures: &[f64]) -> f64 {
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}
