//! Dot products of vectors of small integers.
//!
//! The loop is plain Rust that the compiler vectorises, once for the baseline of each processor
//! family (on 64-bit ARM that includes NEON) and once for x86 with AVX2. Hand-written intrinsics
//! were measured and gain a few per cent: beyond the caches memory is the limit. The `unsafe` code
//! is the call of the second version, which is valid only where the processor has AVX2.
#![allow(unsafe_code)]

/// Alignment of rows in bytes, so that no loop has a remainder: two registers of AVX2.
pub(super) const ROW_ALIGNMENT_BYTES: usize = 64;

/// Returns the bytes of a row with this many numbers.
pub(super) fn row_bytes(dimensions: usize) -> usize {
    dimensions.next_multiple_of(ROW_ALIGNMENT_BYTES)
}

/// Computes the dot product of a query with each row, into `out`: rows are consecutive and as long
/// as the query, whose length is a multiple of [`ROW_ALIGNMENT_BYTES`]. Excess entries of `out`
/// stay unchanged. Sums fit: 8,192 · 127² is below 2²⁷.
pub(super) fn dot_products(query: &[i8], rows: &[u8], out: &mut [i32]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, which was just checked.
        unsafe { dot_products_avx2(query, rows, out) };
        return;
    }
    dot_products_portable(query, rows, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn dot_products_avx2(query: &[i8], rows: &[u8], out: &mut [i32]) {
    dot_products_portable(query, rows, out);
}

#[inline(always)]
fn dot_products_portable(query: &[i8], rows: &[u8], out: &mut [i32]) {
    if query.is_empty() {
        return;
    }
    for (row, out) in rows.chunks_exact(query.len()).zip(out) {
        let (query, row) =
            (query.as_chunks::<ROW_ALIGNMENT_BYTES>().0, row.as_chunks::<ROW_ALIGNMENT_BYTES>().0);
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

    /// The definition, one product after the other.
    fn dot_product_by_definition(query: &[i8], row: &[u8]) -> i32 {
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
            let length = lanes * ROW_ALIGNMENT_BYTES;
            let query: Vec<i8> = (0..length).map(|_| random.i8(..)).collect();
            let rows: Vec<u8> = (0..length * count).map(|_| random.u8(..)).collect();
            let expected: Vec<i32> = rows.chunks(length).map(|row| dot_product_by_definition(&query, row)).collect();
            let (mut fast, mut slow) = (vec![7; count], vec![7; count]);
            dot_products(&query, &rows, &mut fast);
            dot_products_portable(&query, &rows, &mut slow);
            prop_assert_eq!(&fast, &expected);
            prop_assert_eq!(&slow, &expected);
        }
    }

    #[test]
    fn the_greatest_sums_fit() {
        let query = vec![-128_i8; super::super::MAX_DIMENSIONS];
        let row = vec![0x80_u8; super::super::MAX_DIMENSIONS];
        let mut out = [0];
        dot_products(&query, &row, &mut out);
        assert_eq!(out, [128 * 128 * super::super::MAX_DIMENSIONS as i32]);
    }

    #[test]
    fn excess_entries_stay_unchanged() {
        let mut out = [5, 5];
        dot_products(&[1; ROW_ALIGNMENT_BYTES], &[1; ROW_ALIGNMENT_BYTES], &mut out);
        assert_eq!(out, [64, 5]);
        dot_products(&[], &[1; ROW_ALIGNMENT_BYTES], &mut out);
        assert_eq!(out, [64, 5]);
        assert_eq!((row_bytes(1), row_bytes(64), row_bytes(65)), (64, 64, 128));
    }
}
