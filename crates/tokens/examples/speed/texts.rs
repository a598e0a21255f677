//! Texts to be counted: files, or else this project's own and made ones.
//!
//! Invariant: what is made is the same each time.
//! Not here: counting them (`main`).

use std::fmt::Write as _;
use std::path::Path;

/// Bytes of a text, about.
const BYTES: usize = 1 << 20;

/// A name and a text for each file; without one, those that are at hand.
pub(crate) fn all(files: impl Iterator<Item = String>) -> Vec<(String, String)> {
    let texts: Vec<_> = files.map(given).collect();
    if !texts.is_empty() {
        return texts;
    }
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut random = Random(1);
    vec![
        ("English".into(), own(&project, "md")),
        ("Rust".into(), own(&project, "rs")),
        ("fresh names".into(), names(&mut random)),
        ("JSON".into(), json(&mut random)),
        ("base64".into(), base64(&mut random)),
        ("random hanzi".into(), hanzi(&mut random)),
    ]
}

fn given(path: String) -> (String, String) {
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let name = path.rsplit('/').next().map(str::to_owned);
    (name.unwrap_or(path), text)
}

/// Files of the project with this ending.
fn own(project: &Path, ending: &str) -> String {
    let mut text = String::new();
    for folder in ["docs", "crates"] {
        append(&project.join(folder), ending, &mut text);
    }
    text
}

fn append(folder: &Path, ending: &str, text: &mut String) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if text.len() >= BYTES {
            return;
        }
        if path.is_dir() {
            append(&path, ending, text);
        } else if path.extension().is_some_and(|is| is == ending) {
            text.push_str(&std::fs::read_to_string(&path).unwrap_or_default());
        }
    }
}

/// Lines of code whose names and numbers hardly come twice.
fn names(random: &mut Random) -> String {
    let mut text = String::new();
    while text.len() < 8 * BYTES {
        let [first, second, third] = [(); 3].map(|()| random.name());
        let number = random.below(1_000_000_000);
        let _ = writeln!(
            text,
            "    let {first} = self.{second}({third}, 0x{number:x})?;\n    // {number} is what {first} takes"
        );
    }
    text
}

fn json(random: &mut Random) -> String {
    let mut text = String::new();
    while text.len() < BYTES {
        let record = serde_json::json!({
            "id": random.below(1 << 30), "name": random.name(), "tags": [random.name(), "new"],
            "price": random.below(100_000) as f64 / 100.0, "created_at": 1_700_000_000 + random.below(1 << 24),
            "in_stock": random.below(2) == 0, "description": "The quick brown fox jumps over the lazy dog",
        });
        let _ = writeln!(text, "{record:#}");
    }
    text
}

fn base64(random: &mut Random) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let letters = (0..BYTES).map(|_| char::from(LETTERS[random.below(64)]));
    letters.collect()
}

/// Common characters in no order, with punctuation.
fn hanzi(random: &mut Random) -> String {
    const COMMON: &str = "的一是不了人我在有他这中大来上个国到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可她里后小么心多天而能好都然没日于起还发成事只作当想看文无开手十用主行方又如前所本见经头面公同三已老从动两长知民样现分将外但身些与高意进把法此实回二理美点月明其种声全工己话儿者向情部正名定女问力机给等几很业最间新什打便位因重被走电四第门相次东政海口使教西再平真听世气信北少关并内加化由却代军产入先山五太水万市眼体别处总才场师书比住员九笑性通目华报立马命张活难神数件安表原车白应路期叫死常提感金何更反合放做系计或司利受光王果亲界及今京务制解各任至清物台象记边共风战干接它许八特觉望直服毛林题建南度统色字请交爱让认算论百吃义科怎元社术结六功指思非流每青管夫连远资队跟带花快条院变联言权往展该领传近留红治决周保达办运武半候七必城父强步完革深区即求品士转量空甚众技轻程告江语英基派满式李息写呢识极令黄德收脸钱党倒未持取设始版双历越史商千片容研像找友孩站广改议形委早房音火际则首单据导影失拿网香似斯专石若兵弟谁校读志飞观争究包组造落视济喜离虽坏兴切紧";
    let characters: Vec<char> = COMMON.chars().collect();
    let mut text = String::new();
    while text.len() < BYTES {
        for _ in 0..4 + random.below(12) {
            text.push(characters[random.below(characters.len())]);
        }
        text.push(['，', '。', '、', '\n'][random.below(4)]);
    }
    text
}

/// Knuth's, which is all that is needed here.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    /// Syllables that mean nothing.
    fn name(&mut self) -> String {
        let mut name = String::new();
        for _ in 0..2 + self.below(3) {
            name.push(char::from(b"bcdfghklmnprstvz"[self.below(16)]));
            name.push(char::from(b"aeiou"[self.below(5)]));
        }
        if self.below(2) == 0 {
            name.push('_');
            name.push_str(["of", "count", "limit", "name"][self.below(4)]);
        }
        name
    }
}
