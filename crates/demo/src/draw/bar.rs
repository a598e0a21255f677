//! A bar that drains and refills, by eighths of a cell.
//!
//! Not here: what it is of (`panel`).

/// Eighths of a cell, from none to all but one.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// The full part of a bar of so many cells, and what is left of it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "between 0 and the number of eighths"
)]
pub(super) fn bar(share: f64, cells: usize) -> (String, String) {
    let all = cells * 8;
    let share = if share.is_finite() { share } else { 0.0 };
    let eighths = (share.clamp(0.0, 1.0) * all as f64).round() as usize;
    let part = EIGHTHS.get(eighths % 8).copied().unwrap_or_default();
    let full = "█".repeat(eighths / 8) + part;
    let rest = cells - full.chars().count().min(cells);
    (full, "░".repeat(rest))
}

#[cfg(test)]
mod tests {
    use super::bar;

    #[test]
    fn a_bar_has_all_its_cells_whatever_the_share() {
        for eighths in 0..=80 {
            let (full, rest) = bar(f64::from(eighths) / 80.0, 10);
            assert_eq!(
                full.chars().count() + rest.chars().count(),
                10,
                "{full}{rest}"
            );
        }
        assert_eq!(bar(0.5, 4), ("██".to_owned(), "░░".to_owned()));
        assert_eq!(bar(2.0, 1).0, "█");
        assert_eq!(bar(-1.0, 1).0, "");
        assert_eq!(bar(f64::NAN, 1).0, "");
        assert_eq!(bar(0.55, 2), ("█▏".to_owned(), String::new()));
    }
}
