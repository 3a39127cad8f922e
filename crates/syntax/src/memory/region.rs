//! Memory for one tree that is thrown away as a whole.
//!
//! A tree that is parsed only to be looked at once is made of many small pieces, and giving them back one by one takes nearly
//! as long as asking for them. So each thread has a range of addresses in which pieces are laid one after the other while
//! such a text is parsed, and which is simply begun anew for the next text: nothing is freed but what the parser itself frees
//! on its way, which is kept by size and used again. The pages stay, so that the next text finds them there and in the caches.
//!
//! Where the range is full, or the system gives none, pieces come from the ordinary allocator, and the tree has to be
//! given back in the ordinary way: [`Scope::is_whole`] tells.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::{self, NonNull};

/// Addresses that a thread reserves, of which only those that were used take memory: the tree of a megabyte of source fits.
const RESERVED: usize = if cfg!(test) { 8 << 20 } else { 64 << 20 };
/// Bytes of it that stay with the thread between texts: the trees of nearly all files people write fit.
const KEPT: usize = 4 << 20;
/// What pieces are multiples of, and begin at: as much as the C library promises.
const UNIT: usize = 16;
/// A piece's size is written down before it.
const HEADER: usize = size_of::<usize>();
/// Blocks of fewer units than this are of any size: a scanner's state, which is 1,024 bytes at most, fits with its header. Larger
/// ones are powers of two, as the arrays are that grow in them.
const SMALL: usize = 66;
/// Sizes of blocks: the small ones, and each power of two.
const SIZES: usize = SMALL + usize::BITS as usize;

/// What a thread lays its pieces in. Nothing in it has to be dropped, so that it is reached without a question; who unmaps it is
/// [`Mapping`].
struct Region {
    /// Where it begins; 0 where there is none.
    base: Cell<usize>,
    /// Where the next piece begins.
    at: Cell<usize>,
    /// The furthest place a piece ended at since pages were given back.
    highest: Cell<usize>,
    /// A tree lies in it.
    taken: Cell<bool>,
    /// What is asked for now is laid in it.
    open: Cell<bool>,
    /// Something that was asked for didn't fit.
    spilled: Cell<bool>,
    /// The first freed piece of each size, see [`nth`]; in each is where the next one is.
    free: [Cell<usize>; SIZES],
}

thread_local! {
    static REGION: Region = const {
        Region {
            base: Cell::new(0),
            at: Cell::new(0),
            highest: Cell::new(0),
            taken: Cell::new(false),
            open: Cell::new(false),
            spilled: Cell::new(false),
            free: [const { Cell::new(0) }; SIZES],
        }
    };
    static MAPPING: Mapping = Mapping::new();
}

/// A thread's addresses, given back when it ends.
struct Mapping(Option<NonNull<c_void>>);

impl Mapping {
    fn new() -> Self {
        // SAFETY: new addresses, wherever there are some; nothing is there that could be touched.
        let found = unsafe {
            libc::mmap(
                ptr::null_mut(),
                RESERVED,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        let found = NonNull::new(found).filter(|found| found.as_ptr() != libc::MAP_FAILED);
        #[cfg(target_os = "linux")]
        if let Some(base) = found {
            // Trees are gone through from end to end: large pages spare a look for where each small one is. A wish.
            // SAFETY: the addresses that were just mapped.
            unsafe { libc::madvise(base.as_ptr(), RESERVED, libc::MADV_HUGEPAGE) };
        }
        Self(found)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let Some(base) = self.0.filter(|_| !REGION.with(|region| region.taken.get())) else { return };
        REGION.with(|region| region.base.set(0));
        // SAFETY: it was mapped in `new`, of this size, and no tree lies in it.
        unsafe { libc::munmap(base.as_ptr(), RESERVED) };
    }
}

/// While it lives, a tree may lie in the thread's region.
pub(crate) struct Scope {
    /// It belongs to its thread.
    _not_sent: std::marker::PhantomData<*mut ()>,
}

impl Scope {
    /// `None` where the region can't be had, or a tree lies in it already.
    pub(crate) fn enter() -> Option<Self> {
        let base = MAPPING.try_with(|mapping| mapping.0).ok().flatten()?.as_ptr() as usize;
        REGION.with(|region| {
            (!region.taken.replace(true)).then(|| {
                region.base.set(base);
                region.at.set(base);
                region.spilled.set(false);
                region.free.iter().for_each(|first| first.set(0));
                Self { _not_sent: std::marker::PhantomData }
            })
        })
    }

    /// Lays what is asked for in `work` in the region. Whatever of it is still used after this scope isn't there any more.
    pub(crate) fn within<R>(&self, work: impl FnOnce() -> R) -> R {
        struct Close;
        impl Drop for Close {
            fn drop(&mut self) {
                REGION.with(|region| region.open.set(false));
            }
        }
        let _close = Close;
        REGION.with(|region| region.open.set(true));
        work()
    }

    /// Whether everything that was asked for lies in the region.
    pub(crate) fn is_whole(&self) -> bool {
        REGION.with(|region| !region.spilled.get())
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        REGION.with(|region| {
            region.taken.set(false);
            let base = region.base.get();
            region.highest.set(region.highest.get().max(region.at.get()));
            give_back(region, base + KEPT);
        });
    }
}

/// Gives this thread's pages back to the system, which it otherwise keeps for the next text.
pub(super) fn rest() {
    REGION.with(|region| {
        if region.base.get() != 0 && !region.taken.get() {
            give_back(region, region.base.get());
        }
    });
}

fn give_back(region: &Region, from: usize) {
    let length = region.highest.get().saturating_sub(from);
    if length > 0 {
        // SAFETY: addresses of the region, whose base is a page's; no tree lies in it.
        unsafe { libc::madvise(from as *mut c_void, length, libc::MADV_DONTNEED) };
        region.highest.set(from);
    }
}

/// A piece of the region, if it is open and has room.
pub(super) fn take(size: usize) -> Option<NonNull<c_void>> {
    REGION.with(|region| if region.open.get() { region.take(size) } else { None })
}

/// Takes a piece of the region back; whether it was one.
pub(super) fn give(piece: *mut c_void) -> bool {
    REGION.with(|region| region.give(piece as usize))
}

/// A piece of another size with the content of one of the region; `None` where that isn't one.
pub(super) fn resize(
    piece: *mut c_void,
    size: usize,
    elsewhere: impl FnOnce(usize) -> *mut c_void,
) -> Option<*mut c_void> {
    REGION.with(|region| {
        region.holds(piece as usize).then(|| region.resize(piece as usize, size, elsewhere) as *mut c_void)
    })
}

impl Region {
    /// Whether this is the address of a piece.
    fn holds(&self, piece: usize) -> bool {
        piece.wrapping_sub(self.base.get()) < RESERVED && self.base.get() != 0
    }

    fn take(&self, size: usize) -> Option<NonNull<c_void>> {
        let exact = size.checked_add(HEADER + UNIT - 1)? & !(UNIT - 1);
        let block = if exact / UNIT < SMALL { exact } else { exact.checked_next_power_of_two()? };
        let first = self.free.get(nth(block))?;
        let piece = first.get();
        if piece != 0 {
            // SAFETY: a freed piece of at least a word, into which its freeing wrote where the next one is.
            first.set(unsafe { *(piece as *const usize) });
            return NonNull::new(piece as *mut c_void);
        }
        let at = self.at.get();
        // Before the piece, which begins at a multiple of the unit, there is a header.
        let piece = at + UNIT;
        if block > RESERVED || piece + block > self.base.get() + RESERVED {
            self.spilled.set(true);
            return None;
        }
        self.at.set(at + block);
        // SAFETY: within the mapping, aligned to a word; what was there belongs to nobody.
        unsafe { *((piece - HEADER) as *mut usize) = block };
        NonNull::new(piece as *mut c_void)
    }

    fn give(&self, piece: usize) -> bool {
        if !self.holds(piece) {
            return false;
        }
        if let Some(first) = self.free.get(nth(block(piece))) {
            // SAFETY: the piece isn't used any more and has at least a word.
            unsafe { *(piece as *mut usize) = first.get() };
            first.set(piece);
        }
        true
    }

    fn resize(&self, piece: usize, size: usize, elsewhere: impl FnOnce(usize) -> *mut c_void) -> usize {
        let old = block(piece) - HEADER;
        if size <= old {
            return piece;
        }
        let to = match self.take(size) {
            Some(to) => to.as_ptr() as usize,
            None => elsewhere(size) as usize,
        };
        // SAFETY: the new one is larger, and they don't lie in one another.
        unsafe { ptr::copy_nonoverlapping(piece as *const u8, to as *mut u8, old) };
        self.give(piece);
        to
    }
}

/// Which of the sizes a block has.
fn nth(block: usize) -> usize {
    if block / UNIT < SMALL { block / UNIT } else { SMALL + block.ilog2() as usize }
}

/// Bytes of a piece with its header.
fn block(piece: usize) -> usize {
    // SAFETY: the caller has a piece of the region, before which this was written.
    unsafe { *((piece - HEADER) as *const usize) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn address(piece: Option<NonNull<c_void>>) -> usize {
        piece.unwrap().as_ptr() as usize
    }

    fn refused(_: usize) -> *mut c_void {
        unreachable!("there is room")
    }

    #[test]
    fn pieces_are_apart_and_keep_what_is_in_them() {
        let scope = Scope::enter().unwrap();
        assert!(Scope::enter().is_none(), "one tree at a time");
        assert!(take(8).is_none(), "it isn't open");
        scope.within(|| {
            let mut random = 1_u64;
            let mut next = |most: u64| {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (random >> 33) % most
            };
            let mut pieces: Vec<(usize, Vec<u8>)> = Vec::new();
            let fill = |piece: usize, content: &[u8]| {
                // SAFETY: a piece of this length.
                unsafe { ptr::copy_nonoverlapping(content.as_ptr(), piece as *mut u8, content.len()) };
            };
            for round in 0..4_000 {
                let length = if next(20) == 0 { next(5_000) } else { next(200) } as usize;
                let content = vec![round as u8; length];
                let which = next(pieces.len() as u64 + 1) as usize;
                match (next(4), pieces.get(which).cloned()) {
                    (0, Some((piece, _))) => {
                        assert!(give(piece as *mut c_void));
                        pieces.swap_remove(which);
                    }
                    (1, Some((piece, old))) => {
                        let to = resize(piece as *mut c_void, length, refused).unwrap() as usize;
                        let kept = old.len().min(length);
                        // SAFETY: so much of it was copied.
                        assert_eq!(
                            unsafe { std::slice::from_raw_parts(to as *const u8, kept) },
                            &old[..kept]
                        );
                        fill(to, &content);
                        pieces[which] = (to, content);
                    }
                    _ => {
                        let piece = address(take(length));
                        assert_eq!(piece % UNIT, 0);
                        fill(piece, &content);
                        pieces.push((piece, content));
                    }
                }
            }
            for (piece, content) in &pieces {
                // SAFETY: a piece of this length.
                let found = unsafe { std::slice::from_raw_parts(*piece as *const u8, content.len()) };
                assert_eq!(found, content);
            }
        });
        assert!(scope.is_whole());
    }

    #[test]
    fn what_has_no_room_is_told() {
        let scope = Scope::enter().unwrap();
        scope.within(|| {
            let first = address(take(RESERVED / 2 - UNIT));
            assert!(scope.is_whole());
            assert!(take(RESERVED / 2).is_none());
            assert!(!scope.is_whole());
            assert!(take(usize::MAX).is_none() && take(usize::MAX / 2).is_none());
            let mut elsewhere = vec![0_u8; RESERVED];
            let other = elsewhere.as_mut_ptr().cast();
            // SAFETY: its first byte.
            unsafe { *(first as *mut u8) = 7 };
            assert_eq!(resize(first as *mut c_void, RESERVED - UNIT, |_| other), Some(other));
            assert_eq!(elsewhere.first(), Some(&7));
            assert!(!give(other), "it isn't the region's");
        });
        drop(scope);
        rest();
        let scope = Scope::enter().unwrap();
        assert!(scope.is_whole());
        // SAFETY: pages that were given back are there again, and empty.
        scope.within(|| assert_eq!(unsafe { *(address(take(1)) as *const u8) }, 0));
    }

    #[test]
    fn a_thread_has_its_own() {
        let scope = Scope::enter().unwrap();
        let piece = scope.within(|| address(take(100)));
        std::thread::spawn(move || {
            assert!(!give(piece as *mut c_void));
            let scope = Scope::enter().unwrap();
            assert_ne!(scope.within(|| address(take(100))), piece);
        })
        .join()
        .unwrap();
    }
}
