//! Methods of Python's strings, where the library has none or another one.
//!
//! Not here: methods of lists and dicts, and those that the library has as Python does (`pycompat`).

use minijinja::value::{Tuple, ValueKind, from_args};
use minijinja::{Error, ErrorKind, State, Value};
use minijinja_contrib::pycompat::unknown_method_callback;

use super::super::python_text::{is_decimal, is_printable};
use super::{Bound, fault, text};

/// The longest text, in bytes, that padding makes.
const PADDED_MAX: usize = 1 << 20;

pub(super) fn call(
    state: &mut State,
    value: &Value,
    name: &str,
    args: &[Value],
) -> Result<Value, Error> {
    if let Some(it) = value.as_str()
        && let Some(result) = of_text(it, name, args)
    {
        return result;
    }
    // Of a sequence, only `index`: everything that would change it is refused by the engine's sandbox.
    if name == "index" && matches!(value.kind(), ValueKind::Seq) {
        let wanted = Bound::new(args, ["value"])?;
        let mut items = value.try_iter()?;
        let place = items.position(|item| Some(&item) == wanted.get(0));
        return place.map(Value::from).ok_or_else(|| fault("not in list"));
    }
    unknown_method_callback(state, value, name, args)
}

/// None where the method is not known here.
fn of_text(it: &str, name: &str, args: &[Value]) -> Option<Result<Value, Error>> {
    Some(match name {
        "split" => split(it, args, false),
        "rsplit" => split(it, args, true),
        "splitlines" => {
            Bound::new(args, ["keepends"]).map(|given| list(text::lines(it, given.is_true(0))))
        }
        "partition" => separator(args).map(|by| parted(it, it.find(&by), &by, false)),
        "rpartition" => separator(args).map(|by| parted(it, it.rfind(&by), &by, true)),
        "strip" | "lstrip" | "rstrip" => stripped(it, name, args),
        "removeprefix" => one_text(args).map(|by| it.strip_prefix(&*by).unwrap_or(it).into()),
        "removesuffix" => one_text(args).map(|by| it.strip_suffix(&*by).unwrap_or(it).into()),
        "find" | "rfind" | "index" | "rindex" | "count" => found(it, name, args),
        "startswith" => ends(it, args, |text, by| text.starts_with(by)),
        "endswith" => ends(it, args, |text, by| text.ends_with(by)),
        "zfill" => zero_filled(it, args),
        "ljust" | "rjust" | "center" => padded(it, name, args),
        "expandtabs" => Err(fault("`expandtabs` is not known")),
        "title" => none(args).map(|()| text::title(it).into()),
        "capitalize" => none(args).map(|()| text::capitalize(it).into()),
        "swapcase" => none(args).map(|()| text::swapcase(it).into()),
        "casefold" => none(args).and_then(|()| casefolded(it)),
        "isspace" => all(it, args, text::is_space),
        "isdecimal" => all(it, args, is_decimal),
        "isdigit" => all(it, args, |char| {
            is_decimal(char) || text::is_other_digit(char)
        }),
        "isnumeric" => numeric(it).and_then(|()| all(it, args, char::is_numeric)),
        "isalnum" => numeric(it).and_then(|()| all(it, args, is_alphanumeric)),
        "isalpha" => all(it, args, is_letter),
        "isprintable" => none(args).map(|()| it.chars().all(is_printable).into()),
        "istitle" => none(args).map(|()| text::is_title(it).into()),
        "isidentifier" => none(args).and_then(|()| identifier(it)),
        _ => return None,
    })
}

fn none(args: &[Value]) -> Result<(), Error> {
    from_args::<()>(args)
}

fn all(it: &str, args: &[Value], is: impl Fn(char) -> bool) -> Result<Value, Error> {
    none(args).map(|()| (!it.is_empty() && it.chars().all(is)).into())
}

fn list(items: Vec<String>) -> Value {
    items.into_iter().map(Value::from).collect()
}

fn one_text(args: &[Value]) -> Result<String, Error> {
    let given = Bound::new(args, ["text"])?;
    let text = given.text(0)?;
    text.map(str::to_owned)
        .ok_or_else(|| Error::from(ErrorKind::MissingArgument))
}

/// Python refuses an empty one.
fn separator(args: &[Value]) -> Result<String, Error> {
    let by = one_text(args)?;
    if by.is_empty() {
        return Err(fault("empty separator"));
    }
    Ok(by)
}

fn split(it: &str, args: &[Value], from_the_end: bool) -> Result<Value, Error> {
    let given = Bound::new(args, ["sep", "maxsplit"])?;
    let most = given.whole(1)?.and_then(|most| usize::try_from(most).ok());
    let Some(by) = given.text(0)? else {
        return Ok(list(if from_the_end {
            text::words_from_the_end(it, most)
        } else {
            text::words(it, most)
        }));
    };
    if by.is_empty() {
        return Err(fault("empty separator"));
    }
    let parts = most.map_or(usize::MAX, |most| most.saturating_add(1));
    let mut items: Vec<String> = if from_the_end {
        it.rsplitn(parts, by).map(str::to_owned).collect()
    } else {
        it.splitn(parts, by).map(str::to_owned).collect()
    };
    if from_the_end {
        items.reverse();
    }
    Ok(list(items))
}

fn parted(it: &str, at: Option<usize>, by: &str, from_the_end: bool) -> Value {
    let parts = match at.and_then(|at| it.split_at_checked(at)) {
        Some((before, rest)) => [before, by, rest.get(by.len()..).unwrap_or_default()],
        None if from_the_end => ["", "", it],
        None => [it, "", ""],
    };
    Value::from(Tuple::from(parts.map(Value::from)))
}

fn stripped(it: &str, name: &str, args: &[Value]) -> Result<Value, Error> {
    let given = Bound::new(args, ["chars"])?;
    let chars = given
        .text(0)?
        .map(|chars| chars.chars().collect::<Vec<_>>());
    let is_off = |char: char| match &chars {
        Some(chars) => chars.contains(&char),
        None => text::is_space(char),
    };
    let mut it = it;
    if name != "rstrip" {
        it = it.trim_start_matches(is_off);
    }
    if name != "lstrip" {
        it = it.trim_end_matches(is_off);
    }
    Ok(it.into())
}

fn found(it: &str, name: &str, args: &[Value]) -> Result<Value, Error> {
    let given = Bound::new(args, ["sub", "start", "end"])?;
    let wanted = given
        .text(0)?
        .ok_or_else(|| Error::from(ErrorKind::MissingArgument))?;
    let part = text::part(it, given.whole(1)?, given.whole(2)?);
    if name == "count" {
        return Ok(match part {
            None => 0,
            Some((_, part)) if wanted.is_empty() => part.chars().count() + 1,
            Some((_, part)) => part.matches(wanted).count(),
        }
        .into());
    }
    let place = part.and_then(|(start, part)| {
        let at = match name {
            "find" | "index" => part.find(wanted),
            _ => part.rfind(wanted),
        }?;
        Some(start + part.get(..at)?.chars().count())
    });
    match place {
        Some(place) => Ok(place.into()),
        None if name.ends_with("find") => Ok((-1).into()),
        None => Err(fault("substring not found")),
    }
}

fn ends(it: &str, args: &[Value], test: impl Fn(&str, &str) -> bool) -> Result<Value, Error> {
    let given = Bound::new(args, ["text", "start", "end"])?;
    let Some((_, part)) = text::part(it, given.whole(1)?, given.whole(2)?) else {
        return Ok(false.into());
    };
    let wanted = given
        .get(0)
        .ok_or_else(|| Error::from(ErrorKind::MissingArgument))?;
    if let Some(wanted) = wanted.as_str() {
        return Ok(test(part, wanted).into());
    }
    if !matches!(wanted.kind(), ValueKind::Seq | ValueKind::Iterable) {
        return Err(fault("neither text nor a tuple of texts"));
    }
    let mut any = false;
    for one in wanted.try_iter()? {
        let one = one.as_str().ok_or_else(|| fault("not a tuple of texts"))?;
        any |= test(part, one);
    }
    Ok(any.into())
}

fn width(given: &Bound) -> Result<usize, Error> {
    let width = given
        .whole(0)?
        .ok_or_else(|| Error::from(ErrorKind::MissingArgument))?;
    let width = usize::try_from(width).unwrap_or(0);
    if width > PADDED_MAX {
        return Err(fault("padded beyond a mebibyte"));
    }
    Ok(width)
}

fn zero_filled(it: &str, args: &[Value]) -> Result<Value, Error> {
    let width = width(&Bound::new(args, ["width"])?)?;
    let missing = width.saturating_sub(it.chars().count());
    let (sign, digits) = match it.strip_prefix(['+', '-']) {
        Some(digits) => it.split_at(it.len() - digits.len()),
        None => ("", it),
    };
    Ok(format!("{sign}{}{digits}", "0".repeat(missing)).into())
}

fn padded(it: &str, name: &str, args: &[Value]) -> Result<Value, Error> {
    let given = Bound::new(args, ["width", "fillchar"])?;
    let fill = given.text(1)?.unwrap_or(" ");
    if fill.chars().count() != 1 {
        return Err(fault("not one character to fill with"));
    }
    Ok(pad(it, name, width(&given)?, fill).into())
}

pub(super) fn pad(it: &str, name: &str, width: usize, fill: &str) -> String {
    let missing = width.saturating_sub(it.chars().count());
    let left = match name {
        "ljust" => 0,
        "rjust" => missing,
        // As CPython rounds it.
        _ => missing / 2 + (missing & width & 1),
    };
    format!("{}{it}{}", fill.repeat(left), fill.repeat(missing - left))
}

/// Folding of other letters needs a table that is not here.
fn casefolded(it: &str) -> Result<Value, Error> {
    let folded = it.replace(['ß', 'ẞ'], "ss");
    if folded.is_ascii()
        || it
            .chars()
            .all(|char| u32::from(char) < 0x180 && char != 'ŉ')
    {
        let folded = folded.replace('µ', "μ").replace('ſ', "s");
        return Ok(folded.to_lowercase().into());
    }
    Err(fault("`casefold` of letters that are not Latin"))
}

/// Python takes some Chinese letters for numerals.
fn numeric(it: &str) -> Result<(), Error> {
    if it.chars().any(text::may_be_numeral) {
        return Err(fault("numerals among Chinese letters"));
    }
    Ok(())
}

/// Letters are L*, which has neither marks nor letter-like numbers.
fn is_letter(char: char) -> bool {
    char.is_alphabetic() && !char.is_numeric()
}

fn is_alphanumeric(char: char) -> bool {
    char.is_alphanumeric()
}

fn identifier(it: &str) -> Result<Value, Error> {
    if !it.is_ascii() {
        return Err(fault("`isidentifier` of text that is not ASCII"));
    }
    let is_part = |char: char| char.is_ascii_alphanumeric() || char == '_';
    let starts = it.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_');
    Ok((starts && it.chars().all(is_part)).into())
}
