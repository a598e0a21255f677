//! Pictures in a body: counted where the model's rule is public and the picture's size stands in its header.
//!
//! Invariant: a picture is counted by its model's rule and marked ([`Doubt::Media`](crate::Doubt::Media)), or stays in
//! the body, where reading it says that it cannot be counted; it is never counted as nothing.
//! Not here: sound and files, which are not counted; pictures behind an address, of which nothing is known.

mod header;
mod openai;

use serde_json::Value;

use crate::tree::Tree;
use header::Size;

/// Most pictures that are counted in one body.
const MAX_PICTURES: usize = 1024;
/// How many times as long as wide a picture may be, or as wide as long, that is cut into patches.
const MAX_RATIO: u32 = 200;

/// How many tokens a model makes of a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MediaRule {
    /// By tiles, as OpenAI documents it for the model that the body names.
    Tiles,
    /// By patches of so many pixels a side after the picture was made to fit (Qwen's `smart_resize`), and so many marks.
    Patches {
        /// Pixels of a token's side: of a patch, times how many are merged.
        side: u32,
        /// Pixels that a picture has at least.
        least: u64,
        /// Pixels that it has at most.
        most: u64,
    },
    /// The same for each picture.
    Each(u64),
}

/// Marks around a picture's patches, such as `<|vision_start|>`.
const AROUND_PATCHES: u64 = 2;
/// Line ends and marks around Gemma 3's tokens of a picture.
const AROUND_SOFT_TOKENS: u64 = 4;

impl MediaRule {
    /// The rule of a model by its `config.json` and, where its rule depends on it, its `preprocessor_config.json`.
    /// None where none is known.
    #[must_use]
    pub fn of_model(config: &[u8], preprocessor: Option<&[u8]>) -> Option<Self> {
        let config: Value = serde_json::from_slice(config).ok()?;
        let number = |value: Option<&Value>| value.and_then(Value::as_u64);
        let of_vision =
            |name: &str| number(config.get("vision_config").and_then(|it| it.get(name)));
        match config.get("model_type").and_then(Value::as_str)? {
            "qwen2_vl" | "qwen2_5_vl" | "qwen3_vl" | "qwen3_vl_moe" => {
                let sizes: Value = serde_json::from_slice(preprocessor?).ok()?;
                let of = |name: &str, within: &str| {
                    number(sizes.get(name))
                        .or_else(|| number(sizes.get("size").and_then(|it| it.get(within))))
                };
                let patch = number(sizes.get("patch_size"))?;
                let merge = number(sizes.get("merge_size"))?;
                let side = u32::try_from(patch.checked_mul(merge)?).ok()?;
                let (least, most) = (
                    of("min_pixels", "shortest_edge")?,
                    of("max_pixels", "longest_edge")?,
                );
                let is_sane = (1..=256).contains(&side) && least <= most && most <= 1 << 32;
                is_sane.then_some(Self::Patches { side, least, most })
            }
            "llava" => {
                let (size, patch) = (of_vision("image_size")?, of_vision("patch_size")?);
                let keeps_class = config
                    .get("vision_feature_select_strategy")
                    .and_then(Value::as_str)
                    == Some("full");
                let a_side = size
                    .checked_div(patch)
                    .filter(|side| (1..=256).contains(side))?;
                Some(Self::Each(a_side * a_side + u64::from(keeps_class)))
            }
            "gemma3" => {
                let tokens = number(config.get("mm_tokens_per_image"));
                let tokens = tokens.unwrap_or(256);
                (1..=1 << 16)
                    .contains(&tokens)
                    .then_some(Self::Each(tokens + AROUND_SOFT_TOKENS))
            }
            _ => None,
        }
    }

    /// Takes the pictures out of a body that it can count, and gives their tokens; none where there are none.
    pub(crate) fn take(&self, body: &mut Tree<'_>) -> Option<u64> {
        let model = body.get_text("model").unwrap_or_default();
        let prices = openai::prices(model);
        let (mut taken, mut tokens) = (0, 0_u64);
        let Tree::Map(members) = body else {
            return None;
        };
        let lists = members
            .iter_mut()
            .filter(|(name, _)| matches!(&**name, "messages" | "input"));
        for (_, list) in lists {
            let Tree::List(messages) = list else {
                continue;
            };
            for message in messages {
                let Some(Tree::List(parts)) = content(message) else {
                    continue;
                };
                parts.retain(|part| {
                    let counted = Picture::of(part)
                        .filter(|_| taken < MAX_PICTURES)
                        .and_then(|picture| self.count(&picture, prices));
                    if let Some(counted) = counted {
                        taken += 1;
                        tokens = tokens.saturating_add(counted);
                    }
                    counted.is_none()
                });
            }
        }
        (taken > 0).then_some(tokens)
    }

    fn count(&self, picture: &Picture<'_>, prices: Option<openai::Prices>) -> Option<u64> {
        match self {
            Self::Tiles if picture.is_coarse => Some(prices?.of_coarse()),
            Self::Tiles => Some(prices?.of(header::size(picture.data?)?)),
            Self::Patches { side, least, most } => {
                patches(header::size(picture.data?)?, *side, *least, *most)
                    .map(|n| n + AROUND_PATCHES)
            }
            Self::Each(tokens) => Some(*tokens),
        }
    }
}

fn content<'a, 't>(message: &'a mut Tree<'t>) -> Option<&'a mut Tree<'t>> {
    let Tree::Map(members) = message else {
        return None;
    };
    let content = members.iter_mut().find(|(name, _)| name == "content");
    content.map(|(_, content)| content)
}

/// A part that is a picture, in one of three dialects.
struct Picture<'t> {
    /// Base64, if it is in the body.
    data: Option<&'t str>,
    /// Asked for at the lowest resolution.
    is_coarse: bool,
}

impl<'t> Picture<'t> {
    fn of(part: &'t Tree<'_>) -> Option<Self> {
        let (url, detail) = match part.get_text("type")? {
            "image_url" => {
                let image = part.get("image_url")?;
                (
                    image.get_text("url").or_else(|| image.text())?,
                    image.get_text("detail"),
                )
            }
            "input_image" => (part.get_text("image_url")?, part.get_text("detail")),
            "image" => {
                let source = part.get("source")?;
                let data = source
                    .get_text("data")
                    .filter(|_| source.get_text("type") == Some("base64"));
                return Some(Self {
                    data,
                    is_coarse: false,
                });
            }
            _ => return None,
        };
        let data = url
            .strip_prefix("data:")
            .and_then(|url| url.split_once(";base64,"));
        Some(Self {
            data: data.map(|(_, data)| data),
            is_coarse: detail == Some("low"),
        })
    }
}

/// Tokens of a picture after Qwen's `smart_resize`: its sides become multiples of `side`, and its area fits.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sides and areas are far below 2^52, and the numbers are positive"
)]
fn patches(size: Size, side: u32, least: u64, most: u64) -> Option<u64> {
    let (long, short) = (size.width.max(size.height), size.width.min(size.height));
    if long > short.saturating_mul(MAX_RATIO) {
        return None;
    }
    let unit = f64::from(side);
    let (width, height) = (f64::from(size.width), f64::from(size.height));
    let (mut across, mut down) = (
        (width / unit).round_ties_even(),
        (height / unit).round_ties_even(),
    );
    let area = across * down * unit * unit;
    if area > most as f64 {
        let by = (width * height / most as f64).sqrt();
        (across, down) = (
            (width / by / unit).floor().max(1.0),
            (height / by / unit).floor().max(1.0),
        );
    } else if area < least as f64 {
        let by = (least as f64 / (width * height)).sqrt();
        (across, down) = ((width * by / unit).ceil(), (height * by / unit).ceil());
    }
    Some((across * down) as u64)
}

#[cfg(test)]
mod tests;
