//! Where words stand in a chart: on no point, and on no other words, as far as there is room.
//!
//! Measured as a phone shows them, where letters are large against the drawing; on a wider page they only need less.
//! Not here: what the words are (`chart`).

/// How large letters are, in units of the drawing.
#[derive(Clone, Copy)]
pub(super) struct Letters {
    /// How wide one is, by and large.
    wide: f64,
    above: f64,
    below: f64,
}

impl Letters {
    /// Of a mark.
    pub(super) const MARK: Self = Self {
        wide: 11.6,
        above: 18.0,
        below: 6.0,
    };
    /// Of the name of a point.
    pub(super) const POINT: Self = Self {
        wide: 9.6,
        above: 14.0,
        below: 4.0,
    };
}

/// A place for words: where they begin or end, on their base line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Place {
    pub(super) x: f64,
    pub(super) y: f64,
    /// They end there, and begin otherwise.
    pub(super) is_end: bool,
}

#[derive(Debug, Clone, Copy)]
struct Area {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Area {
    fn of(place: Place, letters: Letters, words: &str) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a handful of letters")]
        let wide = words.chars().count() as f64 * letters.wide;
        let left = if place.is_end {
            place.x - wide
        } else {
            place.x
        };
        Self {
            left,
            right: left + wide,
            top: place.y - letters.above,
            bottom: place.y + letters.below,
        }
    }

    fn has(&self, (x, y): (f64, f64), around: f64) -> bool {
        x > self.left - around
            && x < self.right + around
            && y > self.top - around
            && y < self.bottom + around
    }

    fn meets(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }
}

/// What is drawn already.
pub(super) struct Drawn {
    /// Of the drawing: words stand in it whole.
    room: Area,
    points: Vec<(f64, f64)>,
    words: Vec<Area>,
}

/// Half of a point's mark.
const MARK: f64 = 4.0;
/// Words on words are worse than words on points, and both than the best place.
const ON_WORDS: usize = 1_000;

impl Drawn {
    pub(super) fn new(width: f64, height: f64, points: Vec<(f64, f64)>) -> Self {
        Self {
            room: Area {
                left: 0.0,
                right: width,
                top: 0.0,
                bottom: height,
            },
            points,
            words: Vec::new(),
        }
    }

    /// The first of these places where words cover nothing; where there is none, the one where they cover least.
    pub(super) fn best(
        &mut self,
        words: &str,
        letters: Letters,
        places: impl IntoIterator<Item = Place>,
    ) -> Option<Place> {
        let mut best: Option<(usize, Place, Area)> = None;
        for place in places {
            let area = Area::of(place, letters, words);
            let Some(covers) = self.covers(&area) else {
                continue;
            };
            if best.is_none_or(|(least, _, _)| covers < least) {
                best = Some((covers, place, area));
            }
            if covers == 0 {
                break;
            }
        }
        let (_, place, area) = best?;
        self.words.push(area);
        Some(place)
    }

    /// The same, or nowhere.
    pub(super) fn free(
        &mut self,
        words: &str,
        letters: Letters,
        places: impl IntoIterator<Item = Place>,
    ) -> Option<Place> {
        let free = |place: &Place| self.covers(&Area::of(*place, letters, words)) == Some(0);
        let place = places.into_iter().find(free)?;
        self.words.push(Area::of(place, letters, words));
        Some(place)
    }

    /// A line from top to bottom on which no words are to stand.
    pub(super) fn upright(&mut self, x: f64, (top, bottom): (f64, f64)) {
        self.words.push(Area {
            left: x - 2.0,
            right: x + 2.0,
            top,
            bottom,
        });
    }

    /// How much they cover; `None` where they are not whole.
    fn covers(&self, area: &Area) -> Option<usize> {
        let room = &self.room;
        let is_whole = area.left >= room.left
            && area.right <= room.right
            && area.top >= room.top
            && area.bottom <= room.bottom;
        let points = self.points.iter().filter(|at| area.has(**at, MARK)).count();
        let words = self.words.iter().filter(|other| area.meets(other)).count();
        is_whole.then_some(points + words * ON_WORDS)
    }
}
