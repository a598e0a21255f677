//! The terminal that the picture is drawn on.
//!
//! Invariant: whoever takes it gives it back: cursor, screen and what it does with keys are as before when a [`Screen`]
//! is dropped or cannot be made, and when a thread panics. Ctrl-C stays a signal.
//! Not here: what is drawn (`draw`).

use std::io::{self, Stdout, Write};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use ratatui_core::backend::{Backend, ClearType, WindowSize};
use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::layout::{Position, Size};
use ratatui_core::style::{Color, Modifier};
use ratatui_core::terminal::Terminal;
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp,
    tcsetattr,
};

/// Another screen, without a cursor.
const TAKE: &str = "\x1b[?1049h\x1b[?25l";
/// The screen that was there, as it was.
const GIVE: &str = "\x1b[0m\x1b[?25h\x1b[?1049l";
const CLEAR: &str = "\x1b[0m\x1b[2J";

/// Where a terminal cannot say its size.
const SIZE: Size = Size {
    width: 80,
    height: 24,
};

/// Larger terminals are drawn on in part: a picture takes memory by its cells.
const SIZE_MAX: Size = Size {
    width: 1_000,
    height: 500,
};

/// A terminal that is taken.
struct Taken {
    /// What it did with keys, where it could say.
    modes: Option<Termios>,
}

/// The one that is taken, while it is.
static TAKEN: Mutex<Option<Taken>> = Mutex::new(None);

/// Whether standard output is a terminal that this process may change: not one in which it runs in the background.
pub(crate) fn is_ours() -> bool {
    tcgetpgrp(io::stdout()).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// The terminal, taken.
pub(crate) struct Screen {
    terminal: Terminal<Ansi>,
    _give_back: GiveBack,
}

impl Screen {
    /// Takes it.
    pub(crate) fn take() -> io::Result<Self> {
        give_back_on_panic();
        let modes = tcgetattr(io::stdout()).ok();
        let silent = modes.as_ref().map(silent);
        *taken() = Some(Taken { modes });
        let give_back = GiveBack;
        if let Some(silent) = silent {
            _ = tcsetattr(io::stdout(), OptionalActions::Now, &silent);
        }
        io::stdout().write_all(TAKE.as_bytes())?;
        let terminal = Terminal::new(Ansi::default())?;
        Ok(Self {
            terminal,
            _give_back: give_back,
        })
    }

    /// Draws what changed. After a panic the terminal is not ours any more.
    pub(crate) fn draw(&mut self, picture: impl FnOnce(&mut Buffer)) -> io::Result<()> {
        if taken().is_none() {
            return Ok(());
        }
        self.terminal.draw(|frame| picture(frame.buffer_mut()))?;
        Ok(())
    }
}

/// Gives the terminal back when it is dropped.
struct GiveBack;

impl Drop for GiveBack {
    fn drop(&mut self) {
        give_back();
    }
}

fn taken() -> MutexGuard<'static, Option<Taken>> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn give_back() {
    let before = taken().take();
    let Some(Taken { modes }) = before else {
        return;
    };
    let mut out = io::stdout();
    drop(out.write_all(GIVE.as_bytes()).and_then(|()| out.flush()));
    if let Some(modes) = modes {
        _ = tcsetattr(io::stdout(), OptionalActions::Now, &modes);
    }
}

/// What a panic says is to be read on the screen that stays.
fn give_back_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
        }));
    });
}

/// Keys are not shown, and none of them stops the output, puts the process into the background or has it dump its core.
fn silent(before: &Termios) -> Termios {
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    silent.input_modes.remove(InputModes::IXON);
    let none = if cfg!(target_os = "linux") { 0 } else { 0xff };
    for key in [SpecialCodeIndex::VSUSP, SpecialCodeIndex::VQUIT] {
        silent.special_codes[key] = none;
    }
    silent
}

/// Writes cells as ANSI sequences, a picture in one piece.
struct Ansi {
    out: Stdout,
    waits: String,
}

impl Default for Ansi {
    fn default() -> Self {
        Self {
            out: io::stdout(),
            waits: String::new(),
        }
    }
}

impl Backend for Ansi {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let mut style = None;
        let mut next = None;
        for (x, y, cell) in content {
            if next != Some((x, y)) {
                self.waits += &format!("\x1b[{};{}H", y + 1, x + 1);
            }
            next = Some((x + 1, y));
            let wanted = (cell.fg, cell.bg, cell.modifier);
            if style != Some(wanted) {
                self.waits += &sequence(cell);
                style = Some(wanted);
            }
            self.waits += cell.symbol();
        }
        Ok(())
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(Position::ORIGIN)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, _: P) -> io::Result<()> {
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.waits += CLEAR;
        Ok(())
    }

    fn clear_region(&mut self, _: ClearType) -> io::Result<()> {
        self.clear()
    }

    fn size(&self) -> io::Result<Size> {
        let said = terminal_size::terminal_size_of(&self.out);
        Ok(said.map_or(SIZE, |(width, height)| Size {
            width: width.0.min(SIZE_MAX.width),
            height: height.0.min(SIZE_MAX.height),
        }))
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize {
            columns_rows: self.size()?,
            pixels: Size::ZERO,
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        let waits = std::mem::take(&mut self.waits);
        self.out.write_all(waits.as_bytes())?;
        self.out.flush()
    }
}

/// The sequence that has what follows look like this cell.
fn sequence(cell: &Cell) -> String {
    let mut codes = String::from("\x1b[0");
    for (has, code) in [(Modifier::BOLD, ";1"), (Modifier::UNDERLINED, ";4")] {
        if cell.modifier.contains(has) {
            codes += code;
        }
    }
    for (colour, first) in [(cell.fg, 30), (cell.bg, 40)] {
        if let Some(nth) = nth(colour) {
            codes += &format!(";{}", first + nth);
        }
    }
    codes + "m"
}

/// A colour as what is added to the first one's number.
fn nth(colour: Color) -> Option<u8> {
    Some(match colour {
        Color::Black => 0,
        Color::Red => 1,
        Color::Green => 2,
        Color::Yellow => 3,
        Color::Cyan => 6,
        // The bright black.
        Color::DarkGray => 60,
        _ => return None,
    })
}
