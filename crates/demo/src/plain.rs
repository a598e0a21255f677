//! A call as a line of text, where there is no picture.
//!
//! Invariant: no line has more than eighty characters, no colours, no control characters.
//! Not here: the picture (`draw`).

use super::view::{Call, Ending};
use super::words::{NAME_WIDTH, clipped, cost, ending, tokens, who};

/// Characters of a line.
const WIDTH: usize = 80;

/// What stands above the lines.
pub(crate) fn heading() -> String {
    row(["time", "who", "to", "verdict", "engine", "gate", "USD"])
}

pub(crate) fn line(call: &Call) -> String {
    let verdict = format!("{} {}", call.status, ending(call));
    let line = if call.ending == Ending::Refused {
        let begins = row([&call.at, who(&call.who), &call.to, "", "", "", ""]);
        let reason = format!("{} {}", call.status, call.why);
        format!("{:<37}{reason}", begins.trim_end())
    } else {
        let [engine, gate] = [call.engine, call.gate].map(tokens);
        let cost = call
            .cost_pico
            .map_or_else(String::new, |pico| cost(pico.into()));
        row([
            &call.at,
            who(&call.who),
            &call.to,
            &verdict,
            &engine,
            &gate,
            &cost,
        ])
    };
    let shown = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    clipped(&line, WIDTH).chars().map(shown).collect()
}

fn row([at, who, to, verdict, engine, gate, cost]: [&str; 7]) -> String {
    let (who, to) = (clipped(who, NAME_WIDTH), clipped(to, 8));
    let line = format!(
        "{at:<8}  {who:<NAME_WIDTH$} {to:<8} {verdict:<10} {engine:>10} {gate:>10} {cost:>9}"
    );
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests;
