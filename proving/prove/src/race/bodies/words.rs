//! The words that bodies are made of.
//!
//! Nouns serve as identifiers too, and take `s` as it is; verbs `s`, `ed` and `ing`.
//! Invariant: words are small ASCII letters; a common word comes before a rare one, and [`pick`] prefers what comes first.
//! Not here: how sentences and lines of code are built (`author`, `code`).

use std::sync::LazyLock;

/// What a word is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Noun,
    Verb,
    Adjective,
    Adverb,
}

const NOUNS: &str = "time way part place case point hand number group line name state word side head list node path \
    file page row key type field value table queue cache token count price model route budget limit \
    record ledger worker thread socket buffer header request response answer question client server \
    engine prompt output input result error reason event stream window bucket sample chunk block \
    layer graph edge leaf commit build test suite report figure column member option setting default \
    version release change order turn step phase stage task job plan goal rule law right owner user \
    team tenant account invoice payment balance credit charge amount total sum share rate quota \
    period month week day hour minute moment delay timeout deadline attempt failure fault cause \
    effect signal alert metric gauge counter histogram label scrape trace span log message letter \
    symbol digit string slice array vector tensor weight gradient kernel device driver disk volume \
    mount folder archive backup snapshot replica shard leader follower quorum lease lock permit \
    semaphore barrier channel pipe port host domain zone region cluster pool session cookie secret \
    certificate signature digest seed nonce cipher scope claim role grant audience issuer subject \
    consumer producer broker topic partition offset cursor schema migration constraint trigger \
    transaction isolation conflict merge rebase checkout manifest artifact package compiler parser \
    lexer grammar expression statement literal operator variable constant function method closure \
    generic trait interface module framework runtime scheduler allocator collector pointer reference \
    lifetime alignment threshold tolerance precision estimate forecast residual variance median \
    quantile percentile distribution outlier cohort baseline experiment verdict footnote paragraph \
    chapter river harbour bridge garden kitchen winter summer market village journey neighbour \
    engineer physician librarian apprentice article bicycle candle carpenter corridor dinner \
    elephant envelope farmer feather forest hammer island jacket lantern mountain needle ocean \
    painter pepper pigeon pillow planet ribbon sailor shelter shoulder spoon station stone teacher \
    temple ticket tunnel turtle umbrella uncle valley violin wagon whistle writer";

const VERBS: &str = "count start record report check return accept reject load lock limit select sort filter format \
    render collect insert append convert await request sign mark link print open turn look need want \
    work call ask show help follow happen allow add expect remain wait test revert deploy restart \
    inspect audit assert confirm cancel abort expand flatten join enter exit pull stream buffer \
    drain evict borrow spawn park shift pack unpack encrypt decrypt discover connect listen respond \
    forward redirect";

const ADJECTIVES: &str = "new good first last long great little own other old right big high different small large next \
    early young important few public bad same able late open empty full short clear hard strict lazy stale fresh cold \
    warm exact rough equal single double partial total local remote global shared private internal external pending \
    active idle busy ready broken missing optional required deprecated stable nightly concurrent sequential idempotent \
    monotonic deterministic reproducible approximate cumulative hierarchical asynchronous immutable opaque verbose";

const ADVERBS: &str = "also now then here still just only again often soon once twice always never mostly rarely \
    quickly slowly quietly exactly roughly barely nearly together already later therefore elsewhere meanwhile usually \
    seldom reluctantly simultaneously independently";

/// Words with letters beyond ASCII, symbols, and what people paste: never made new.
pub(super) const FOREIGN: [&str; 28] = [
    "Zoë",
    "Łukasz",
    "José",
    "Müller",
    "Søren",
    "Nguyễn",
    "Çelik",
    "naïve",
    "façade",
    "café",
    "Straße",
    "Größe",
    "décembre",
    "mañana",
    "über",
    "東京",
    "数据",
    "模型",
    "한국어",
    "Привет",
    "Москва",
    "Ελλάδα",
    "שלום",
    "°C",
    "µs",
    "→",
    "≤",
    "✅",
];

/// Parts of long words that are hardly ever seen.
pub(super) const PREFIXES: [&str; 14] = [
    "trans", "pseudo", "counter", "electro", "hyper", "intra", "micro", "over", "photo", "pre",
    "re", "sub", "un", "ultra",
];
pub(super) const ROOTS: [&str; 20] = [
    "glomer", "spectr", "morph", "calibr", "magnet", "crystall", "sediment", "vascul", "pigment",
    "ferment", "lamin", "oscill", "perfor", "granul", "tessell", "nebul", "capill", "fibr",
    "gravit", "chron",
];
pub(super) const SUFFIXES: [&str; 10] = [
    "ation", "ative", "ology", "ometer", "ular", "osis", "ization", "ogenic", "ently", "ism",
];

/// Of one class, by length.
type ByLength = Vec<Vec<&'static str>>;

static BY_LENGTH: LazyLock<[ByLength; 4]> = LazyLock::new(|| {
    [NOUNS, VERBS, ADJECTIVES, ADVERBS].map(|list| {
        let mut all: ByLength = Vec::new();
        for word in list.split_ascii_whitespace() {
            if all.len() <= word.len() {
                all.resize_with(word.len() + 1, Vec::new);
            }
            all[word.len()].push(word);
        }
        all
    })
});

static ALL: LazyLock<[Vec<&'static str>; 4]> = LazyLock::new(|| {
    [NOUNS, VERBS, ADJECTIVES, ADVERBS].map(|list| list.split_ascii_whitespace().collect())
});

/// All words of a class.
pub(super) fn of(class: Class) -> &'static [&'static str] {
    &ALL[class as usize]
}

/// Those of `len` letters.
#[inline]
pub(super) fn words(class: Class, len: usize) -> &'static [&'static str] {
    BY_LENGTH[class as usize]
        .get(len)
        .map_or(&[], Vec::as_slice)
}

/// One of `list`, which is not empty, the more likely the earlier it stands: 64 random bits in, of which the lower 32 count.
#[inline]
pub(super) fn pick(list: &[&'static str], bits: u64) -> &'static str {
    let (a, b) = (bits & 0xffff, bits >> 16 & 0xffff);
    list[((a * b * list.len() as u64) >> 32) as usize]
}
