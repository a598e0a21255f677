//! What readers can be told: keys and values to settings.
//!
//! Invariant: a key that the reader does not know is refused.
//! Not here: what readers do with it.

use ::corpus::reader::{Blocks, Format, Geometry, Place, Reader, Screen, Settings, Spread};

use experiment::random::Rng;

use super::groups::Group;
use crate::text::printable;

/// Sessions of one profile that are made at most: as many as it can be told to have by hand.
const MOST_MADE: u64 = 4_000_000;

/// Bytes of a profile's name at most.
const MOST_NAME_BYTES: usize = 128;

/// Refuses a name that cannot stand on a page.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let says = if name.is_empty() {
        "is empty".to_owned()
    } else if name.len() > MOST_NAME_BYTES {
        format!("has {} bytes, at most {MOST_NAME_BYTES}", name.len())
    } else if printable(name) != name {
        "has characters that are not printed".to_owned()
    } else {
        return Ok(());
    };
    let start: String = name.chars().take(MOST_NAME_BYTES).collect();
    Err(format!(
        "the name of profile {start:?} {says}; give it another"
    ))
}

/// The reader of a profile.
pub(super) fn reader(group: &Group, seed: u64) -> Result<Box<dyn Reader>, String> {
    let refuse = |says: String| format!("profile {:?}: {says}", group.name);
    let format: Format = group.reader.parse().map_err(refuse)?;
    let name: Vec<u64> = group.name.bytes().map(u64::from).collect();
    if format == Format::Synthetic && !(1..=MOST_MADE).contains(&group.sessions.unwrap_or(1_000)) {
        return Err(refuse(format!("1 to {MOST_MADE} sessions can be made")));
    }
    let mut settings = Settings {
        // Made sessions of one profile are not those of another.
        seed: Rng::stream(seed, &name).bits(),
        sessions: group.sessions.unwrap_or(1_000),
        ..Settings::default()
    };
    for (key, value) in &group.options {
        let known = match format {
            Format::Omniact => omniact(&mut settings, key, value),
            Format::Synthetic => synthetic(&mut settings.geometry, key, value),
            Format::Trace | Format::AgentX => trace(&mut settings.blocks, key, value),
            _ => Ok(false),
        };
        match known {
            Ok(true) => {}
            Ok(false) => {
                return Err(refuse(format!("reader {format} has no setting {key:?}")));
            }
            Err(says) => return Err(refuse(format!("{key}={value}: {says}"))),
        }
    }
    Ok(format.reader(&settings))
}

/// The licence under which the dataset of a format is published, where all of it has one. Records that say their own
/// go before it.
pub(super) fn licence(group: &Group) -> Option<&'static str> {
    match group.reader.parse().ok()? {
        Format::ToolBench | Format::ToolLlama | Format::TerminalBench | Format::Omniact => {
            Some("Apache-2.0")
        }
        Format::OpenHands | Format::SweAgent => Some("CC-BY-4.0"),
        Format::Synthetic => Some("none needed: made"),
        Format::Atif | Format::CoderForge | Format::Messages | Format::Trace | Format::AgentX => {
            None
        }
    }
}

/// Refuses a profile whose screens would be empty.
pub(super) fn check_media(group: &Group, keeps_media: bool) -> Result<(), String> {
    let asks_for_images = group
        .options
        .iter()
        .any(|(key, value)| key == "omniact-mode" && value == "image");
    if asks_for_images && !keeps_media {
        return Err(format!(
            "profile {:?}: omniact-mode=image needs --keep-media and a model that sees images; detact-text has the \
             screens as text",
            group.name
        ));
    }
    Ok(())
}

/// Whether its sessions stand for arrivals, of which none may be missing.
pub(super) fn is_trace(group: &Group) -> bool {
    group.reader.parse() == Ok(Format::Trace)
}

/// Whether sessions are made, so that there are none to draw from.
pub(super) fn makes_sessions(group: &Group) -> bool {
    group.reader.parse() == Ok(Format::Synthetic)
}

fn omniact(settings: &mut Settings, key: &str, value: &str) -> Result<bool, String> {
    match (key, value) {
        ("omniact-mode", "image") => settings.screen = Screen::Image,
        ("omniact-mode", "detact-text") => settings.screen = Screen::DetactText,
        ("omniact-mode", _) => return Err("must be image or detact-text".to_owned()),
        ("screen", "first") => settings.screen_place = Place::First,
        ("screen", "last") => settings.screen_place = Place::Last,
        ("screen", _) => return Err("must be first or last".to_owned()),
        ("root", path) => settings.root = Some(path.into()),
        _ => return Ok(false),
    }
    Ok(true)
}

fn trace(blocks: &mut Blocks, key: &str, value: &str) -> Result<bool, String> {
    let tokens = |least: u32| {
        let tokens: u32 = value
            .parse()
            .map_err(|_| "is no number of tokens".to_owned())?;
        let fits = (least..=1_000_000).contains(&tokens);
        fits.then_some(tokens)
            .ok_or_else(|| format!("must be from {least} to 1,000,000"))
    };
    match key {
        "block" => blocks.tokens = tokens(1)?,
        "template" => blocks.template_tokens = tokens(0)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn synthetic(geometry: &mut Geometry, key: &str, value: &str) -> Result<bool, String> {
    let number = || {
        let number: f64 = value.parse().map_err(|_| "is no number".to_owned())?;
        let fine = number.is_finite() && number >= 0.0;
        fine.then_some(number)
            .ok_or_else(|| "must be 0 or more".to_owned())
    };
    let think = |geometry: &mut Geometry| geometry.think_s.unwrap_or(Spread::of(0.0));
    match key {
        "turns" => geometry.turns.mean = number()?,
        "turns-cv" => geometry.turns.cv = number()?,
        "first-prompt" => geometry.first_prompt.mean = number()?,
        "first-prompt-cv" => geometry.first_prompt.cv = number()?,
        "appended" => geometry.appended.mean = number()?,
        "appended-cv" => geometry.appended.cv = number()?,
        "output" => geometry.output.mean = number()?,
        "output-cv" => geometry.output.cv = number()?,
        "shared" => geometry.shared = number()?,
        "think-s" => {
            let mean = number()?;
            geometry.think_s = Some(Spread {
                mean,
                ..think(geometry)
            });
        }
        "think-cv" => {
            let cv = number()?;
            geometry.think_s = Some(Spread {
                cv,
                ..think(geometry)
            });
        }
        _ => return Ok(false),
    }
    Ok(true)
}
