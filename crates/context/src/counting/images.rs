//! The tokens of an image by its width and height.

use journeyman_protocol::ImageTokens;

/// The longest edge that an image is counted with: providers scale larger images down or refuse
/// them.
const MAX_EDGE: u64 = 8_192;
/// The size of an image whose size can't be read.
const ASSUMED_SIZE: (u32, u32) = (2_048, 2_048);
/// The squares of an unknown model: those of Anthropic, which are the smallest, without its limit.
const UNKNOWN_MODEL_RULE: ImageTokens =
    ImageTokens::Patches { side: 28, max_edge: 4_096, max_patches: 5_000, percent: 100 };

/// Returns the number of tokens of an image of that width and height, or of a large one if they
/// aren't known.
#[must_use]
pub fn image_tokens(rule: ImageTokens, size: Option<(u32, u32)>) -> u64 {
    let (width, height) = size.unwrap_or(ASSUMED_SIZE);
    let (width, height) = (u64::from(width).clamp(1, MAX_EDGE), u64::from(height).clamp(1, MAX_EDGE));
    match rule {
        ImageTokens::Unknown => image_tokens(UNKNOWN_MODEL_RULE, size),
        ImageTokens::Fixed(tokens) => u64::from(tokens),
        ImageTokens::Tiles { base, tile } => {
            let (width, height) = scale_down(width, height, width.max(height), 2_048);
            let (width, height) = scale_down(width, height, width.min(height), 768);
            u64::from(base) + u64::from(tile) * count_squares(width, height, 512)
        }
        ImageTokens::Patches { side, max_edge, max_patches, percent } => {
            let (width, height) = scale_down(width, height, width.max(height), u64::from(max_edge));
            let patches = count_squares(width, height, u64::from(side)).min(u64::from(max_patches));
            (patches * u64::from(percent)).div_ceil(100)
        }
        ImageTokens::Crops { crop } => {
            let is_small = width <= 384 && height <= 384;
            u64::from(crop) * if is_small { 1 } else { count_squares(width, height, 768) }
        }
    }
}

/// Scales an image down until `edge`, which is one of its edges, has `most` pixels.
fn scale_down(width: u64, height: u64, edge: u64, most: u64) -> (u64, u64) {
    if edge <= most {
        return (width, height);
    }
    let scale = |length: u64| (length * most).div_ceil(edge).max(1);
    (scale(width), scale(height))
}

/// Returns the number of squares that cover an image.
fn count_squares(width: u64, height: u64, side: u64) -> u64 {
    width.div_ceil(side.max(1)) * height.div_ceil(side.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vendors_own_examples() {
        let tiles = ImageTokens::Tiles { base: 85, tile: 170 };
        let claude = ImageTokens::Patches { side: 28, max_edge: 1_568, max_patches: 1_600, percent: 100 };
        let newer = ImageTokens::Patches { side: 28, max_edge: 2_576, max_patches: 4_784, percent: 100 };
        let gpt = ImageTokens::Patches { side: 32, max_edge: 6_000, max_patches: 10_000, percent: 120 };
        let mini = ImageTokens::Patches { side: 32, max_edge: 2_048, max_patches: 1_536, percent: 162 };
        let gemini = ImageTokens::Crops { crop: 258 };
        let cases = [
            // OpenAI: 1024² is scaled to 768², four squares; 2048 × 4096 to 768 × 1536, six.
            (tiles, 1_024, 1_024, 765),
            (tiles, 2_048, 4_096, 1_105),
            // OpenAI: 1024² is 32 × 32 squares.
            (mini, 1_024, 1_024, 1_659),
            (gpt, 1_024, 1_024, 1_229),
            (gpt, 1_920, 1_080, 2_448),
            // Anthropic: about width · height / 750, at most about 1,600.
            (claude, 200, 200, 64),
            (claude, 1_024, 1_024, 1_369),
            (claude, 8_000, 8_000, 1_600),
            (newer, 1_920, 1_080, 2_691),
            (newer, 8_000, 8_000, 4_784),
            // Google: 258 up to 384², else 258 for each square of 768.
            (gemini, 384, 384, 258),
            (gemini, 960, 540, 516),
            (ImageTokens::Fixed(1_120), 4_000, 3_000, 1_120),
        ];
        for (rule, width, height, tokens) in cases {
            assert_eq!(image_tokens(rule, Some((width, height))), tokens, "{rule:?} {width}x{height}");
        }
    }

    #[test]
    fn absurd_sizes_are_bounded() {
        for rule in [
            ImageTokens::Unknown,
            ImageTokens::Crops { crop: 258 },
            ImageTokens::Tiles { base: 85, tile: 170 },
            ImageTokens::Patches { side: 0, max_edge: 0, max_patches: 1_600, percent: 100 },
        ] {
            for size in [None, Some((0, 0)), Some((u32::MAX, u32::MAX)), Some((u32::MAX, 1))] {
                assert!((1..=40_000).contains(&image_tokens(rule, size)), "{rule:?} {size:?}");
            }
        }
    }
}
