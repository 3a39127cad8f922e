//! Texts one after the other, known by number: one piece of memory instead of one for each.

/// Texts, numbered in the order in which they came.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Texts {
    text: String,
    ends: Vec<u32>,
}

impl Texts {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// A text by its number.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<&str> {
        let number = number as usize;
        let end = *self.ends.get(number)?;
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.text.get(start as usize..end as usize)
    }

    /// All of them, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let text = self.text.get(start..*end as usize).unwrap_or_default();
            start = *end as usize;
            text
        })
    }

    /// Adds one. Of more than four gigabytes of them the last are empty.
    pub fn push(&mut self, text: &str) {
        if u32::try_from(self.text.len() + text.len()).is_ok() {
            self.text.push_str(text);
        }
        self.ends.push(u32::try_from(self.text.len()).unwrap_or(u32::MAX));
    }

    /// About how many bytes of memory they take.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.text.len() + self.ends.len() * size_of::<u32>()
    }
}

impl<T: AsRef<str>> FromIterator<T> for Texts {
    fn from_iter<I: IntoIterator<Item = T>>(all: I) -> Self {
        let mut texts = Self::default();
        all.into_iter().for_each(|text| texts.push(text.as_ref()));
        texts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_by_number() {
        let all = ["one", "", "größe", ""];
        let texts: Texts = all.into_iter().collect();
        assert_eq!((texts.len(), texts.is_empty()), (4, false));
        assert_eq!(texts.iter().collect::<Vec<_>>(), all);
        for (number, text) in (0..).zip(all) {
            assert_eq!(texts.get(number), Some(text));
        }
        assert_eq!(texts.get(4), None);
    }
}
