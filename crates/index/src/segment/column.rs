//! Columns of 32-bit numbers, one for each file, chunk or name, stored together because queries
//! read very many of them.

use std::ops::Range;

/// A column of a mapped segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column<'a> {
    numbers: &'a [[u8; 4]],
}

impl<'a> Column<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { numbers: bytes.as_chunks().0 }
    }

    /// Returns a number; 0 for a missing one.
    #[inline]
    pub(crate) fn get(self, at: u32) -> u32 {
        self.numbers.get(at as usize).map_or(0, |number| u32::from_le_bytes(*number))
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = u32> + 'a {
        self.numbers.iter().map(|number| u32::from_le_bytes(*number))
    }

    /// Returns the range of a row's items, of `all` items, from the starts of this row and the
    /// next.
    pub(crate) fn item_range(self, row: u32, all: u32) -> Range<u32> {
        let start = self.get(row).min(all);
        let end = self.numbers.get(row as usize + 1).map_or(all, |number| u32::from_le_bytes(*number));
        start..end.clamp(start, all)
    }

    /// Returns the last row that starts at or before an item: rows without items start where the
    /// next one does.
    pub(crate) fn row_of_item(self, thing: u32) -> u32 {
        let after = self.numbers.partition_point(|first| u32::from_le_bytes(*first) <= thing);
        (after as u32).saturating_sub(1)
    }
}

/// Lengths of documents in terms, cut at 16 bits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LengthColumn<'a> {
    lengths: &'a [[u8; 2]],
}

impl<'a> LengthColumn<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { lengths: bytes.as_chunks().0 }
    }

    /// Returns a length; 0 for a missing one.
    #[inline]
    pub(crate) fn get(self, at: u32) -> u32 {
        self.lengths.get(at as usize).map_or(0, |length| u32::from(u16::from_le_bytes(*length)))
    }
}

/// Appends a length.
pub(super) fn put_length(out: &mut Vec<u8>, length: u32) {
    out.extend_from_slice(&u16::try_from(length).unwrap_or(u16::MAX).to_le_bytes());
}

/// Encodes a column.
pub(crate) fn put_column(numbers: impl IntoIterator<Item = u32>) -> Vec<u8> {
    numbers.into_iter().flat_map(u32::to_le_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_own_the_items_between_their_starts() {
        let bytes = put_column([0, 2, 2, 5]);
        let column = Column::new(&bytes);
        let ranges: Vec<_> = (0..5).map(|row| column.item_range(row, 5)).collect();
        assert_eq!(ranges, [0..2, 2..2, 2..5, 5..5, 0..5]);
        assert_eq!((0..5).map(|thing| column.row_of_item(thing)).collect::<Vec<_>>(), [0, 0, 2, 2, 2]);
        assert_eq!(column.iter().collect::<Vec<_>>(), [0, 2, 2, 5]);
    }

    #[test]
    fn lengths_are_cut_at_16_bits() {
        let mut bytes = Vec::new();
        [0, 7, 65_535, 70_000].into_iter().for_each(|length| put_length(&mut bytes, length));
        let lengths = LengthColumn::new(&bytes);
        assert_eq!([0, 1, 2, 3, 4].map(|at| lengths.get(at)), [0, 7, 65_535, 65_535, 0]);
    }

    #[test]
    fn damaged_rows_stay_within_bounds() {
        let bytes = put_column([9, 3, 700]);
        let column = Column::new(&bytes);
        for row in 0..4 {
            let range = column.item_range(row, 5);
            assert!(range.start <= range.end && range.end <= 5, "{range:?}");
        }
        assert_eq!(Column::new(&[1, 2, 3]).row_of_item(7), 0);
    }
}
