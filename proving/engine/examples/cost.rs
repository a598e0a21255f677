//! CPU time that an upstream spends on an unary request, by the kernel's account of its thread (Linux).
//!
//! `cargo run --release -p engine --example cost -- fixed|engine <connections> <requests>`

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use engine::EngineConfig;
use engine::fixed::{self, FixedConfig};

const REQUEST: &[u8] = b"POST /v1/chat/completions HTTP/1.1\r\nhost: engine.local:8000\r\nauthorization: Bearer sk-0123456789\r\n\
    content-type: application/json\r\naccept: application/json\r\nuser-agent: fixed-cost\r\ncontent-length: 96\r\n\r\n\
    {\"model\":\"fixed\",\"messages\":[{\"role\":\"user\",\"content\":\"How many requests can this one carry?\"}]}";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, default: usize| arguments.get(i).map_or(Ok(default), |a| a.parse());
    let (connections, requests) = (number(1, 32)?, number(2, 200_000)?);
    if arguments.first().is_some_and(|a| a == "engine") {
        let server = engine::spawn_thread(EngineConfig {
            models: vec!["fixed".to_owned()],
            ttft: Duration::ZERO,
            inter_token: Duration::ZERO,
            ..EngineConfig::default()
        })?;
        measure("engine", server.addr(), connections, requests)
    } else {
        let server = fixed::spawn_thread(FixedConfig::default())?;
        measure("engine-fixed", server.addr(), connections, requests)
    }
}

fn measure(
    thread: &str,
    addr: SocketAddr,
    connections: usize,
    requests: usize,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut clients = (0..connections)
        .map(|_| TcpStream::connect(addr))
        .collect::<Result<Vec<_>, _>>()?;
    clients.iter().try_for_each(|c| c.set_nodelay(true))?;
    let mut answer = vec![0; 64 << 10];
    clients[0].write_all(REQUEST)?;
    let answer_bytes = clients[0].read(&mut answer)?;
    let (before, began) = (cpu_ns(thread)?, Instant::now());
    let rounds = requests / connections;
    for _ in 0..rounds {
        for client in &mut clients {
            client.write_all(REQUEST)?;
        }
        for client in &mut clients {
            client.read_exact(&mut answer[..answer_bytes])?;
        }
    }
    let (spent, took) = (cpu_ns(thread)? - before, began.elapsed());
    let done = rounds * connections;
    println!(
        "{thread}: {done} requests on {connections} connections, answers of {answer_bytes} bytes, in {took:.2?}: \
         {:.2} us CPU a request, {:.0} a second",
        spent as f64 / 1e3 / done as f64,
        done as f64 / took.as_secs_f64()
    );
    Ok(())
}

/// Time on a CPU of the thread named `name`.
fn cpu_ns(name: &str) -> Result<u64, Box<dyn std::error::Error>> {
    for task in std::fs::read_dir("/proc/self/task")? {
        let task = task?.path();
        if std::fs::read_to_string(task.join("comm"))?.trim() == name {
            let stat = std::fs::read_to_string(task.join("schedstat"))?;
            return Ok(stat
                .split(' ')
                .next()
                .ok_or("an empty schedstat")?
                .parse()?);
        }
    }
    Err(format!("no thread {name}").into())
}
