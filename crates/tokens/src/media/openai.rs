//! Tokens of a picture by tiles of 512 pixels, as OpenAI documents them for the models of GPT-4o's time.
//!
//! Invariant: a model whose numbers are not documented has none.
//! Not here: models that count by patches (the small ones since GPT-4.1), whose rule has other numbers for each.

use super::header::Size;

/// Longest side that a picture is made to fit in, then the shorter side, and the side of a tile.
const FIT: u32 = 2048;
const SHORT: u32 = 768;
const TILE: u32 = 512;

/// What a model takes for a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prices {
    base: u64,
    tile: u64,
}

/// By the model's name, with or without a date and an owner before it.
pub(super) fn prices(model: &str) -> Option<Prices> {
    let name = model.rsplit('/').next()?;
    let is = |family: &str| {
        let dated = name
            .strip_prefix(family)
            .and_then(|rest| rest.strip_prefix('-'));
        name == family || dated.is_some_and(|date| date.starts_with("20"))
    };
    let (base, tile) = match () {
        () if is("gpt-4o-mini") => (2833, 5667),
        () if is("gpt-4o") || is("gpt-4.1") || name == "chatgpt-4o-latest" => (85, 170),
        () if is("o1") || is("o3") => (75, 150),
        () => return None,
    };
    Some(Prices { base, tile })
}

impl Prices {
    pub(super) const fn of_coarse(self) -> u64 {
        self.base
    }

    pub(super) fn of(self, size: Size) -> u64 {
        let (mut long, mut short) = (size.width.max(size.height), size.width.min(size.height));
        if long > FIT {
            short = scaled(short, FIT, long);
            long = FIT;
        }
        if short > SHORT {
            long = scaled(long, SHORT, short);
            short = SHORT;
        }
        let tiles = u64::from(long.div_ceil(TILE)) * u64::from(short.div_ceil(TILE));
        self.base + self.tile * tiles
    }
}

/// `side * to / from`, at least one pixel.
fn scaled(side: u32, to: u32, from: u32) -> u32 {
    let side = u64::from(side) * u64::from(to) / u64::from(from.max(1));
    u32::try_from(side).unwrap_or(to).max(1)
}
