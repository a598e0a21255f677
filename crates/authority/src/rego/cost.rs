//! What a function reads and makes, by its arguments, before it is called.
//!
//! Invariant: never less than what the function does; where that is not a matter of its arguments' length alone
//! (widths in a format, an exponent, a text for each letter of another) the arguments say it.
//! Not here: which function costs what (`functions`), regular expressions (`regular`).

use regorus::Value;

use super::meter::{BYTES_A_STEP, Cost, FUNCTION_STEPS_MAX};

/// What a value takes beside its text or its elements.
const VALUE_BYTES: usize = 16;
/// What is larger meets the bound, and is not measured further.
const SIZE_MAX: usize = (FUNCTION_STEPS_MAX + 1) * BYTES_A_STEP;
/// A value of more values meets the bound, and they are not counted further.
const NODES_MAX: usize = FUNCTION_STEPS_MAX + 1;
/// What finding a place in a time zone costs, bytes read.
const TIME_BYTES: usize = 640;
/// The largest width, precision or exponent that a text may ask for.
const WIDTH_MAX: u32 = 1000;

/// What a turn of a loop takes.
const TURN_STEPS: usize = 3;
/// Bytes of texts that are compared in one step.
const COMPARED_BYTES_A_STEP: usize = 512;
/// The longest number that is calculated with, or given to a function.
const NUMBER_BITS_MAX: u64 = 1024;

/// How a function tells its cost; `None` for arguments that it must not be called with.
pub(super) type CostOf = fn(&[Value]) -> Option<Cost>;

/// The size of all that is in a value, bytes, up to [`SIZE_MAX`].
pub(super) fn size(value: &Value) -> usize {
    let mut left = SIZE_MAX;
    measure(value, &mut left);
    SIZE_MAX - left
}

fn measure(value: &Value, left: &mut usize) {
    let own = match value {
        Value::String(text) => VALUE_BYTES + text.len(),
        // To print a number, or to multiply two, takes the square of its length; the longest the library cannot print.
        Value::Number(number) if number.as_i64().is_none() && number.as_u64().is_none() => {
            match number.as_big().map_or(0, |number| number.bits() / 64) {
                words if words >= NUMBER_BITS_MAX / 64 => SIZE_MAX,
                words => {
                    VALUE_BYTES * usize::try_from((words + 1) * (words + 1)).unwrap_or(SIZE_MAX)
                }
            }
        }
        _ => VALUE_BYTES,
    };
    *left = left.saturating_sub(own);
    if *left == 0 {
        return;
    }
    let mut inner = |value: &Value| {
        if *left > 0 {
            measure(value, left);
        }
    };
    within(value, &mut inner);
}

/// Gives `each` the values that are directly within this one.
fn within(value: &Value, each: &mut impl FnMut(&Value)) {
    match value {
        Value::Array(values) => values.iter().for_each(each),
        Value::Set(values) => values.iter().for_each(each),
        Value::Object(members) => members.iter().for_each(|(name, of)| {
            each(name);
            each(of);
        }),
        _ => {}
    }
}

/// Steps of comparing a value with another, in which a text is quickly gone through.
pub(super) fn comparison(args: &[Value]) -> Option<Cost> {
    let Some(value) = args.first() else {
        return Some(Cost::of_steps(1));
    };
    let (nodes, size) = (nodes(value), size(value));
    if nodes >= NODES_MAX || size >= SIZE_MAX {
        return Some(Cost::of_steps(usize::MAX));
    }
    let texts = size.saturating_sub(nodes.saturating_mul(VALUE_BYTES));
    Some(Cost::of_steps(
        1 + nodes / 8 + texts / COMPARED_BYTES_A_STEP,
    ))
}

/// Steps of going through a value's elements, each of which takes others of the interpreter.
pub(super) fn turns(args: &[Value]) -> Option<Cost> {
    Some(Cost::of_steps(
        args.first().map_or(0, count).saturating_mul(TURN_STEPS),
    ))
}

/// Steps of looking for something in a value: in a set they are few.
pub(super) fn search(args: &[Value]) -> Option<Cost> {
    match args.first() {
        Some(Value::Set(_)) => Some(Cost::of_steps(2)),
        _ => comparison(args),
    }
}

/// Steps of calculating with a number, or of putting a set together with another; `None` for a number that is longer
/// than anybody counts.
pub(super) fn calculation(args: &[Value]) -> Option<Cost> {
    match args.first()? {
        Value::Number(number) if number.as_i64().is_none() && number.as_u64().is_none() => {
            let bits = number.as_big().map_or(64, |number| number.bits());
            (bits < NUMBER_BITS_MAX).then(|| Cost::of_steps(8))
        }
        value @ (Value::Array(_) | Value::Set(_) | Value::Object(_)) => {
            Some(Cost::of_steps(1 + 2 * nodes(value)))
        }
        _ => Some(Cost::of_steps(1)),
    }
}

/// How many values are in a value, with itself, up to [`NODES_MAX`].
fn nodes(value: &Value) -> usize {
    fn count(value: &Value, left: &mut usize) {
        *left = left.saturating_sub(1);
        let mut inner = |value: &Value| {
            if *left > 0 {
                count(value, left);
            }
        };
        within(value, &mut inner);
    }
    let mut left = NODES_MAX;
    count(value, &mut left);
    NODES_MAX - left
}

/// How many elements a value has.
fn count(value: &Value) -> usize {
    match value {
        Value::Array(values) => values.len(),
        Value::Set(values) => values.len(),
        Value::Object(members) => members.len(),
        _ => 1,
    }
}

fn all(args: &[Value]) -> usize {
    args.iter().map(size).fold(0, usize::saturating_add)
}

/// The length of a text; of anything else, which the function will refuse and print, all of it.
fn length(args: &[Value], at: usize) -> usize {
    args.get(at).map_or(0, |value| match value {
        Value::String(text) => text.len(),
        other => size(other),
    })
}

fn text(args: &[Value], at: usize) -> &str {
    match args.get(at) {
        Some(Value::String(text)) => text,
        _ => "",
    }
}

fn cost(reads: usize, makes: usize) -> Option<Cost> {
    Some(Cost::new(reads, makes))
}

/// It looks at what its argument is.
pub(super) fn kind(_: &[Value]) -> Option<Cost> {
    cost(0, 0)
}

/// It reads its arguments and answers shortly.
pub(super) fn reading(args: &[Value]) -> Option<Cost> {
    cost(all(args), 2 * VALUE_BYTES)
}

/// It makes no more than it reads; a letter in capitals can take three times its bytes.
pub(super) fn copying(args: &[Value]) -> Option<Cost> {
    let all = all(args);
    cost(all, all.saturating_mul(3))
}

/// It looks at a text's letters, or at how many elements there are.
pub(super) fn counting(args: &[Value]) -> Option<Cost> {
    let reads = match args.first() {
        Some(Value::Array(_) | Value::Set(_) | Value::Object(_)) => 0,
        _ => all(args),
    };
    cost(reads, VALUE_BYTES)
}

/// It makes an array of elements that stay where they are.
pub(super) fn rearranging(args: &[Value]) -> Option<Cost> {
    let of = |value: &Value| match value {
        Value::Array(values) => 2 * VALUE_BYTES * values.len(),
        other => size(other),
    };
    let all = args.iter().map(of).fold(0, usize::saturating_add);
    cost(all, all)
}

/// It finds a member by a name or a path.
pub(super) fn finding(args: &[Value]) -> Option<Cost> {
    let object = match args.first() {
        Some(Value::Object(_)) | None => 0,
        Some(other) => size(other),
    };
    cost(object.saturating_add(args.get(1).map_or(0, size)), 0)
}

/// It orders what is in its arguments, or looks each element up in what is ordered.
pub(super) fn ordering(args: &[Value]) -> Option<Cost> {
    let halvings = |value: &Value| 1 + count(value).checked_ilog2().unwrap_or(0) as usize;
    let turns: usize = args.iter().map(halvings).max().unwrap_or(1);
    let all = all(args);
    cost(all.saturating_mul(turns), all)
}

/// It compares a window of one with the other, at each place.
pub(super) fn comparing(args: &[Value]) -> Option<Cost> {
    let windows = args.first().map_or(1, count);
    let all = all(args);
    cost(all.saturating_mul(windows.max(1)), VALUE_BYTES)
}

/// It puts sets together, one after the other, each time anew.
pub(super) fn folding(args: &[Value]) -> Option<Cost> {
    let all = all(args);
    let times = args.first().map_or(1, count);
    cost(all.saturating_mul(times.max(1)), all.saturating_mul(2))
}

/// It multiplies all numbers, and the product grows.
pub(super) fn multiplying(args: &[Value]) -> Option<Cost> {
    let all = all(args);
    cost(all.saturating_mul(all / (4 * VALUE_BYTES)), all)
}

/// It reads numbers, and writes one in digits.
pub(super) fn digits(args: &[Value]) -> Option<Cost> {
    let all = all(args);
    cost(all, all.saturating_mul(8))
}

/// It reads a text as JSON.
pub(super) fn parsing(args: &[Value]) -> Option<Cost> {
    let all = all(args);
    cost(all.saturating_mul(4), all.saturating_mul(16))
}

/// It writes a value as JSON, where a letter can take six times its bytes.
pub(super) fn writing(args: &[Value]) -> Option<Cost> {
    let all = all(args);
    cost(all.saturating_mul(4), all.saturating_mul(6))
}

/// It reads the digits of a number, with an exponent perhaps.
pub(super) fn number(args: &[Value]) -> Option<Cost> {
    let written = text(args, 0);
    let mut exponents = written.split(['e', 'E']).skip(1);
    let is_small = |part: &str| {
        let digits = part.trim_start_matches(['+', '-']);
        let end = digits.find(|c: char| !c.is_ascii_digit());
        let digits = digits
            .get(..end.unwrap_or(digits.len()))
            .unwrap_or_default();
        digits.is_empty() || digits.parse::<u32>().is_ok_and(|of| of <= WIDTH_MAX)
    };
    if !exponents.all(is_small) {
        return None;
    }
    let all = all(args);
    let words = written.len() / 16 + 1;
    cost(all.saturating_mul(words), all.saturating_add(512))
}

/// It asks where in time something is.
pub(super) fn time(args: &[Value]) -> Option<Cost> {
    cost(
        all(args).saturating_mul(4).saturating_add(TIME_BYTES),
        all(args).saturating_mul(8),
    )
}

/// A moment in a layout, whose letters the library takes for bytes.
pub(super) fn layout(args: &[Value]) -> Option<Cost> {
    let is_plain = |value: &Value| !matches!(value, Value::String(text) if !text.is_ascii());
    let is_known = match args.first() {
        Some(Value::Array(values)) => values.iter().all(is_plain),
        Some(value) => is_plain(value),
        None => true,
    };
    is_known.then(|| time(args)).flatten()
}

/// A duration: a unit is letters that the library knows, or it cuts one in two.
pub(super) fn duration(args: &[Value]) -> Option<Cost> {
    let mut letters = text(args, 0).chars().peekable();
    while let Some(letter) = letters.next() {
        let is_micro = matches!(letter, 'µ' | 'μ') && letters.peek() == Some(&'s');
        if !letter.is_ascii() && !is_micro {
            return None;
        }
    }
    time(args)
}

/// It joins texts.
pub(super) fn joining(args: &[Value]) -> Option<Cost> {
    let between = length(args, 0).saturating_mul(args.get(1).map_or(0, count));
    let all = all(args).saturating_add(between);
    cost(all, all)
}

/// It looks for one text at each place of the other.
pub(super) fn searching(args: &[Value]) -> Option<Cost> {
    let (of, part) = (length(args, 0), length(args, 1));
    let reads = of.saturating_mul(4 + part / 8).saturating_add(part);
    cost(reads, VALUE_BYTES)
}

/// The same, with a number for each place where it is found.
pub(super) fn searching_all(args: &[Value]) -> Option<Cost> {
    let (of, part) = (length(args, 0), length(args, 1));
    let reads = of.saturating_mul(4 + part / 8).saturating_add(part);
    cost(reads, of.saturating_mul(3 * VALUE_BYTES))
}

/// It takes letters off a text that stand in the other.
pub(super) fn trimming(args: &[Value]) -> Option<Cost> {
    let (of, letters) = (length(args, 0), length(args, 1));
    cost(of.saturating_mul(4 + letters).saturating_add(letters), of)
}

/// It compares each text of one with each of the other.
pub(super) fn pairing(args: &[Value]) -> Option<Cost> {
    let (of, with) = (args.first().map_or(0, size), args.get(1).map_or(0, size));
    let times = args.get(1).map_or(1, count).max(1);
    cost(of.saturating_mul(times).saturating_add(with), VALUE_BYTES)
}

/// How often a text stands in another, for a function that does something for each.
fn times(of: &str, part: &str) -> usize {
    if part.is_empty() {
        return of.chars().count() + 1;
    }
    of.matches(part).count()
}

pub(super) fn replacing(args: &[Value]) -> Option<Cost> {
    let all = all(args);
    if all >= SIZE_MAX {
        return cost(all, 0);
    }
    let times = times(text(args, 0), text(args, 1));
    let made = times.saturating_mul(text(args, 2).len());
    cost(all, made.saturating_add(text(args, 0).len()))
}

pub(super) fn splitting(args: &[Value]) -> Option<Cost> {
    let all = all(args);
    if all >= SIZE_MAX {
        return cost(all, 0);
    }
    let times = times(text(args, 0), text(args, 1));
    let made = times.saturating_mul(3 * VALUE_BYTES);
    cost(all, made.saturating_add(all))
}

/// It formats: a width or a precision makes that many letters, and what is written can take ten times its bytes.
pub(super) fn formatting(args: &[Value]) -> Option<Cost> {
    let mut widths = 0_usize;
    let mut letters = text(args, 0).chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            continue;
        }
        if letters.next_if_eq(&'%').is_some() {
            continue;
        }
        letters.next_if_eq(&'.');
        let mut width = 0_u32;
        while let Some(digit) = letters.next_if(|c| c.is_numeric()) {
            width = width.checked_mul(10)?.checked_add(digit.to_digit(10)?)?;
        }
        if width > WIDTH_MAX {
            return None;
        }
        widths = widths.saturating_add(width as usize + 400);
    }
    let all = all(args);
    let made = all.saturating_mul(10).saturating_add(widths);
    cost(all.saturating_mul(4), made)
}

/// A text for each letter: what is empty stands everywhere, and the library takes it amiss.
pub(super) fn occurrences(args: &[Value]) -> Option<Cost> {
    if args.get(1).is_some_and(|part| *part == Value::from("")) {
        return None;
    }
    searching(args)
}

/// Whether one has all of the other: an empty list in a list is taken amiss.
pub(super) fn containing(args: &[Value]) -> Option<Cost> {
    if args.get(1).is_some_and(has_empty_list) {
        return None;
    }
    comparing(args)
}

fn has_empty_list(value: &Value) -> bool {
    match value {
        Value::Array(values) => values.is_empty(),
        Value::Object(members) => members.values().any(has_empty_list),
        _ => false,
    }
}
