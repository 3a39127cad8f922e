//! The tensors of a model, checked once and read in place.

use safetensors::{Dtype, SafeTensors};

use super::super::MAX_DIMENSIONS;

/// Names of the table of vectors in the different layouts.
const TABLE_NAMES: [&str; 3] = ["embeddings", "embedding.weight", "0"];

/// A table of rows, and the data of tokens.
pub(super) struct Tensors {
    bytes: Vec<u8>,
    /// Offset of the table.
    start: usize,
    kind: ElementType,
    rows: usize,
    dimensions: usize,
    weights: Option<Vec<f32>>,
    mapping: Option<Vec<usize>>,
}

/// The type of a tensor's numbers. All are little-endian.
#[derive(Clone, Copy)]
enum ElementType {
    F64,
    F32,
    F16,
    Bf16,
    I8,
}

impl ElementType {
    fn from_dtype(kind: Dtype) -> Option<Self> {
        Some(match kind {
            Dtype::F64 => Self::F64,
            Dtype::F32 => Self::F32,
            Dtype::F16 => Self::F16,
            Dtype::BF16 => Self::Bf16,
            Dtype::I8 => Self::I8,
            _ => return None,
        })
    }

    fn size(self) -> usize {
        match self {
            Self::F64 => 8,
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::I8 => 1,
        }
    }

    /// Calls a function with the numbers.
    fn visit_numbers(self, bytes: &[u8], mut visit: impl FnMut(usize, f32)) {
        match self {
            #[allow(clippy::cast_possible_truncation)]
            Self::F64 => visit_items(bytes, |at, number| visit(at, f64::from_le_bytes(number) as f32)),
            Self::F32 => visit_items(bytes, |at, number| visit(at, f32::from_le_bytes(number))),
            Self::F16 => visit_items(bytes, |at, number| visit(at, f16_to_f32(u16::from_le_bytes(number)))),
            Self::Bf16 => visit_items(bytes, |at, number| {
                visit(at, f32::from_bits(u32::from(u16::from_le_bytes(number)) << 16));
            }),
            Self::I8 => visit_items(bytes, |at, number| visit(at, f32::from(i8::from_le_bytes(number)))),
        }
    }

    fn to_numbers(self, bytes: &[u8]) -> Vec<f32> {
        let mut numbers = Vec::with_capacity(bytes.len() / self.size());
        self.visit_numbers(bytes, |_, number| numbers.push(number));
        numbers
    }
}

fn visit_items<const N: usize>(bytes: &[u8], mut visit: impl FnMut(usize, [u8; N])) {
    for (at, number) in bytes.as_chunks::<N>().0.iter().enumerate() {
        visit(at, *number);
    }
}

/// Converts a 16-bit IEEE 754 number.
fn f16_to_f32(bits: u16) -> f32 {
    let (sign, exponent, fraction) = (bits >> 15, bits >> 10 & 0x1f, f32::from(bits & 0x3ff));
    let size = match exponent {
        0 => fraction * 2.0_f32.powi(-24),
        0x1f if fraction == 0.0 => f32::INFINITY,
        0x1f => f32::NAN,
        exponent => (1.0 + fraction / 1024.0) * 2.0_f32.powi(i32::from(exponent) - 15),
    };
    if sign == 1 { -size } else { size }
}

impl Tensors {
    /// Reads a file of tensors.
    pub(super) fn read(bytes: Vec<u8>) -> Result<Self, String> {
        let file = SafeTensors::deserialize(&bytes).map_err(|error| error.to_string())?;
        let table = TABLE_NAMES.iter().find_map(|name| file.tensor(name).ok());
        let table = table.ok_or_else(|| format!("it has no tensor called {}", TABLE_NAMES.join(" or ")))?;
        let &[rows, dimensions] = table.shape() else {
            return Err(format!("its vectors are no table but {:?}", table.shape()));
        };
        if rows == 0 || !(1..=MAX_DIMENSIONS).contains(&dimensions) {
            return Err(format!(
                "it has {rows} vectors of {dimensions} numbers; 1 to {MAX_DIMENSIONS} are possible"
            ));
        }
        let kind = ElementType::from_dtype(table.dtype())
            .ok_or_else(|| format!("its vectors are of type {:?}, which isn't read", table.dtype()))?;
        let start = table.data().as_ptr().addr() - bytes.as_ptr().addr();
        let weights = match file.tensor("weights") {
            Ok(found) => {
                let kind = ElementType::from_dtype(found.dtype()).ok_or_else(|| {
                    format!("its weights are of type {:?}, which isn't read", found.dtype())
                })?;
                Some(kind.to_numbers(found.data()))
            }
            Err(_) => None,
        };
        let mapping = match file.tensor("mapping") {
            Ok(found) => Some(read_token_rows(found.dtype(), found.data(), rows)?),
            Err(_) => None,
        };
        let tensors = Self { start, kind, rows, dimensions, weights, mapping, bytes };
        let mut finite = tensors.weights.iter().flatten().all(|number| number.is_finite());
        kind.visit_numbers(tensors.table_bytes(), |_, number| finite &= number.is_finite());
        if finite { Ok(tensors) } else { Err("a number in it is infinite or none".to_owned()) }
    }

    /// Checks that each token, whose numbers are below `tokens`, has a row.
    pub(super) fn check_token_bound(&self, tokens: usize) -> Result<(), String> {
        let has = |what: &str, count: usize| {
            if count < tokens {
                Err(format!("it has {what} for {count} tokens, and the tokenizer knows {tokens}"))
            } else {
                Ok(())
            }
        };
        if let Some(weights) = &self.weights {
            has("weights", weights.len())?;
        }
        match &self.mapping {
            Some(mapping) => has("places", mapping.len()),
            None => has("vectors", self.rows),
        }
    }

    pub(super) fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn table_bytes(&self) -> &[u8] {
        let length = self.rows * self.dimensions * self.kind.size();
        self.bytes.get(self.start..self.start + length).unwrap_or_default()
    }

    /// Adds a token's vector, times its weight.
    pub(super) fn add_token_vector(&self, token: u32, sum: &mut [f32]) {
        let token = token as usize;
        let row = match &self.mapping {
            Some(mapping) => mapping.get(token).copied(),
            None => Some(token),
        };
        let weight = self.weights.as_ref().map_or(1.0, |all| all.get(token).copied().unwrap_or(1.0));
        let length = self.dimensions * self.kind.size();
        let Some(row) = row.and_then(|row| self.table_bytes().get(row * length..(row + 1) * length)) else {
            return;
        };
        self.kind.visit_numbers(row, |at, number| {
            if let Some(sum) = sum.get_mut(at) {
                *sum += number * weight;
            }
        });
    }
}

/// Returns the row of each token.
fn read_token_rows(kind: Dtype, bytes: &[u8], rows: usize) -> Result<Vec<usize>, String> {
    let mut all = Vec::new();
    match kind {
        Dtype::I32 => {
            visit_items(bytes, |_, number| all.push(usize::try_from(i32::from_le_bytes(number)).ok()))
        }
        Dtype::I64 => {
            visit_items(bytes, |_, number| all.push(usize::try_from(i64::from_le_bytes(number)).ok()))
        }
        other => return Err(format!("its mapping is of type {other:?}, which isn't read")),
    }
    let within: Option<Vec<usize>> = all.into_iter().map(|row| row.filter(|row| *row < rows)).collect();
    within.ok_or_else(|| format!("its mapping names a row that isn't among the {rows}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_what_the_standard_says() {
        for (bits, number) in [
            (0x0000, 0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65_504.0),
            (0x0001, 2.0_f32.powi(-24)),
            (0x03ff, 1023.0 * 2.0_f32.powi(-24)),
            (0x0400, 2.0_f32.powi(-14)),
            (0x3555, 0.333_251_95),
            (0x7c00, f32::INFINITY),
        ] {
            assert_eq!(f16_to_f32(bits), number, "{bits:x}");
        }
        assert!(f16_to_f32(0x7e00).is_nan());
    }
}
