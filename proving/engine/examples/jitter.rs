//! How evenly tokens arrive when many streams are open at once, by the client's clock.
//!
//! `cargo run --release -p engine --example jitter -- <streams> <tokens> <step ms>`
//!
//! A machine whose every step takes the same time serves all streams together, so that all tokens of a stream should
//! be one step apart. Prints the gaps between the events of a stream less that step. The engine has a thread of its own,
//! the clients have another; where there is `taskset`, each has a core of its own.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use engine::{EngineConfig, Hardware};
use simulator::cost::{DecodeCost, FrontendCost, PrefillCost, StepCost};
use simulator::preset::Preset;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, default: usize| arguments.get(i).map_or(Ok(default), |a| a.parse());
    let (streams, tokens, step_ms) = (number(0, 1_000)?, number(1, 100)?, number(2, 50)?);
    let engine = engine::spawn_thread(EngineConfig {
        hardware: Some(machine(step_ms as f64)?),
        ..EngineConfig::default()
    })?;
    warm(engine.addr())?;
    let pinned = pin(thread("engine")?, 0) && pin(thread("jitter")?, 1);
    let before = cpu_ns("engine")?;
    let began = Instant::now();
    let arrivals = receive(engine.addr(), streams, tokens)?;
    let busy = (cpu_ns("engine")? - before) as f64 / 1e9 / began.elapsed().as_secs_f64();
    // Until all have been admitted, steps also read prompts; gaps of the last half are of decoding alone.
    let step = Duration::from_millis(step_ms as u64).as_secs_f64();
    let mut off: Vec<f64> = arrivals
        .iter()
        .flat_map(|times| times[times.len() / 2..].windows(2))
        .map(|pair| ((pair[1] - pair[0]).as_secs_f64() - step).abs() * 1e3)
        .collect();
    off.sort_by(f64::total_cmp);
    let at = |share: f64| off[((off.len() - 1) as f64 * share) as usize];
    println!(
        "{streams} streams of {tokens} tokens, a step of {step_ms} ms, {} gaps: off by p50 {:.2}, p90 {:.2}, p99 {:.2}, \
         max {:.2} ms; the engine's thread was busy {:.0} % of the time{}",
        off.len(),
        at(0.5),
        at(0.9),
        at(0.99),
        at(1.0),
        busy * 100.0,
        if pinned { " of one core" } else { "" }
    );
    Ok(())
}

/// Every step takes `step_ms`, whatever it does.
fn machine(step_ms: f64) -> Outcome<Hardware> {
    let mut hardware = Hardware::from(&Preset::named("instant")?);
    hardware.scheduler.max_num_seqs = 4096;
    hardware.scheduler.max_num_batched_tokens = 1 << 20;
    hardware.frontend = FrontendCost::default();
    hardware.cost = StepCost {
        experts: None,
        overhead_ms: step_ms,
        prefill: PrefillCost {
            base_ms: 0.0,
            per_token_us: 0.0,
            per_pair_ns: 0.0,
        },
        decode: DecodeCost::Line {
            base_ms: 0.0,
            per_sequence_us: 0.0,
            per_context_token_ns: 0.0,
        },
    };
    Ok(hardware)
}

fn request(tokens: usize) -> String {
    let body = format!(
        "{{\"model\":\"gpt-oss-120b\",\"prompt\":\"Tell me\",\"max_tokens\":{tokens},\"ignore_eos\":true,\"stream\":true}}"
    );
    format!(
        "POST /v1/completions HTTP/1.1\r\nhost: e\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// One call, so that the first has not to read a vocabulary.
fn warm(addr: SocketAddr) -> Outcome<()> {
    let mut client = TcpStream::connect(addr)?;
    client.write_all(request(2).as_bytes())?;
    client.read_exact(&mut [0; 64])?;
    Ok(())
}

/// When each event of each stream came.
fn receive(addr: SocketAddr, streams: usize, tokens: usize) -> Outcome<Vec<Vec<Instant>>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let clients: Vec<_> = (0..streams)
            .map(|_| tokio::spawn(client(addr, tokens)))
            .collect();
        let mut all = Vec::with_capacity(streams);
        for client in clients {
            all.push(client.await??);
        }
        Ok(all)
    })
}

async fn client(addr: SocketAddr, tokens: usize) -> std::io::Result<Vec<Instant>> {
    let mut socket = tokio::net::TcpStream::connect(addr).await?;
    socket.write_all(request(tokens).as_bytes()).await?;
    let (mut times, mut buffer) = (Vec::with_capacity(tokens), vec![0; 16 << 10]);
    while times.len() < tokens {
        let read = socket.read(&mut buffer).await?;
        if read == 0 {
            return Err(std::io::Error::other("a stream ended early"));
        }
        let (now, text) = (Instant::now(), String::from_utf8_lossy(&buffer[..read]));
        times.extend(std::iter::repeat_n(now, text.matches("data: {").count()));
        // Tokens that shared an event are one arrival.
        if text.contains("[DONE]") {
            break;
        }
    }
    Ok(times)
}

/// The thread of this process that is named `name`.
fn thread(name: &str) -> Outcome<PathBuf> {
    for task in std::fs::read_dir("/proc/self/task")? {
        let task = task?.path();
        if std::fs::read_to_string(task.join("comm"))?.trim() == name {
            return Ok(task);
        }
    }
    Err(format!("no thread {name}").into())
}

/// Time on a CPU of the thread named `name`.
fn cpu_ns(name: &str) -> Outcome<u64> {
    let stat = std::fs::read_to_string(thread(name)?.join("schedstat"))?;
    let time = stat.split(' ').next().ok_or("an empty schedstat")?;
    Ok(time.parse()?)
}

/// Keeps a thread on one core. False where that cannot be done.
fn pin(thread: PathBuf, core: usize) -> bool {
    let Some(id) = thread.file_name() else {
        return false;
    };
    let mut taskset = Command::new("taskset");
    taskset.args(["-pc", &core.to_string()]).arg(id);
    let done = taskset.stdout(Stdio::null()).stderr(Stdio::null()).status();
    done.is_ok_and(|status| status.success())
}
