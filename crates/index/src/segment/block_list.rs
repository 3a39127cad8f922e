//! A list that grows without being copied.

/// Maximum items of a block: some tens of kilobytes, which an allocator reuses.
const MAX_BLOCK_ITEMS: usize = 1 << 13;
/// Number of items of the first block.
const FIRST_BLOCK_ITEMS: usize = 1 << 6;

/// A list in blocks that stay where they are.
#[derive(Debug)]
pub(super) struct BlockList<T> {
    blocks: Vec<Vec<T>>,
    len: usize,
}

impl<T> Default for BlockList<T> {
    fn default() -> Self {
        Self { blocks: Vec::new(), len: 0 }
    }
}

impl<T: Copy> BlockList<T> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn push(&mut self, item: T) {
        let room = self.blocks.last().is_some_and(|last| last.len() < last.capacity());
        if !room {
            self.blocks.push(Vec::with_capacity(self.len.clamp(FIRST_BLOCK_ITEMS, MAX_BLOCK_ITEMS)));
        }
        if let Some(last) = self.blocks.last_mut() {
            last.push(item);
            self.len += 1;
        }
    }

    pub(super) fn extend_from_slice(&mut self, mut items: &[T]) {
        while let Some((first, rest)) = items.split_first() {
            self.push(*first);
            let Some(last) = self.blocks.last_mut() else { return };
            let (now, later) = rest.split_at(rest.len().min(last.capacity() - last.len()));
            last.extend_from_slice(now);
            self.len += now.len();
            items = later;
        }
    }

    /// Calls `show` with every item, in order.
    pub(super) fn for_each(&self, mut show: impl FnMut(T)) {
        for block in &self.blocks {
            block.iter().for_each(|item| show(*item));
        }
    }
}

impl<T: Copy> Extend<T> for BlockList<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        items.into_iter().for_each(|item| self.push(item));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_stay_in_order() {
        let (mut blocks, mut expected) = (BlockList::default(), Vec::new());
        for round in 0..200_u32 {
            let own: Vec<u32> = (0..round * 7 % 1_000).map(|item| item * round).collect();
            if round % 2 == 0 {
                blocks.extend_from_slice(&own);
            } else {
                blocks.extend(own.iter().copied());
            }
            expected.extend(own);
        }
        assert_eq!(blocks.len(), expected.len());
        let mut found = Vec::new();
        blocks.for_each(|item| found.push(item));
        assert_eq!(found, expected);
        assert!(blocks.blocks.iter().all(|block| block.capacity() <= MAX_BLOCK_ITEMS));
    }
}
