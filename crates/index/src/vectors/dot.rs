//! Many dot products of small whole numbers: the one place where vectors are compared.
//!
//! The loop is plain Rust that the compiler makes SIMD of, once for what every processor of a kind has (on 64-bit ARM that
//! is NEON) and once for x86 with AVX2. Intrinsics by hand were measured and win a few per cent: beyond the caches memory
//! is the bound. `unsafe` is the call of the second one, which is right only where the processor has it.
#![allow(unsafe_code)]

/// Rows begin at multiples of so many bytes, so that no loop has a rest: two registers of AVX2.
pub(super) const LANE: usize = 64;

/// Bytes that a row of so many numbers takes.
pub(super) fn stride(dimensions: usize) -> usize {
    dimensions.next_multiple_of(LANE)
}

/// The dot product of a query with each row, into `out`: rows follow each other and are as long as the query is, which is a
/// multiple of [`LANE`]. What has no row stays as it is. Sums fit: 8,192 · 127² is below 2²⁷.
pub(super) fn dots(query: &[i8], rows: &[u8], out: &mut [i32]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, as was just asked.
        unsafe { with_avx2(query, rows, out) };
        return;
    }
    plain(query, rows, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_avx2(query: &[i8], rows: &[u8], out: &mut [i32]) {
    plain(query, rows, out);
}

#[inline(always)]
fn plain(query: &[i8], rows: &[u8], out: &mut [i32]) {
    if query.is_empty() {
        return;
    }
    for (row, out) in rows.chunks_exact(query.len()).zip(out) {
        let (query, row) = (query.as_chunks::<LANE>().0, row.as_chunks::<LANE>().0);
        let mut sum = 0;
        for (a, b) in query.iter().zip(row) {
            for (a, b) in a.iter().zip(b) {
                sum += i32::from(*a) * i32::from(b.cast_signed());
            }
        }
        *out = sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As it is defined, one product after the other.
    fn one_by_one(query: &[i8], row: &[u8]) -> i32 {
        (0..query.len()).map(|at| i32::from(query[at]) * i32::from(row[at] as i8)).sum()
    }

    proptest! {
        #[test]
        fn every_way_gives_the_same(
            lanes in 1_usize..9,
            count in 0_usize..20,
            seed in any::<u64>(),
        ) {
            let mut random = fastrand::Rng::with_seed(seed);
            let length = lanes * LANE;
            let query: Vec<i8> = (0..length).map(|_| random.i8(..)).collect();
            let rows: Vec<u8> = (0..length * count).map(|_| random.u8(..)).collect();
            let expected: Vec<i32> = rows.chunks(length).map(|row| one_by_one(&query, row)).collect();
            let (mut fast, mut slow) = (vec![7; count], vec![7; count]);
            dots(&query, &rows, &mut fast);
            plain(&query, &rows, &mut slow);
            prop_assert_eq!(&fast, &expected);
            prop_assert_eq!(&slow, &expected);
        }
    }

    #[test]
    fn the_greatest_sums_fit() {
        let query = vec![-128_i8; super::super::MAX_DIMENSIONS];
        let row = vec![0x80_u8; super::super::MAX_DIMENSIONS];
        let mut out = [0];
        dots(&query, &row, &mut out);
        assert_eq!(out, [128 * 128 * super::super::MAX_DIMENSIONS as i32]);
    }

    #[test]
    fn what_has_no_row_is_left() {
        let mut out = [5, 5];
        dots(&[1; LANE], &[1; LANE], &mut out);
        assert_eq!(out, [64, 5]);
        dots(&[], &[1; LANE], &mut out);
        assert_eq!(out, [64, 5]);
        assert_eq!((stride(1), stride(64), stride(65)), (64, 64, 128));
    }
}
