//! WebBench against a web server with a process for each connection (Apache 1.3).
//!
//! The client threads run a closed loop: connect, send a request, read the page, close, and start
//! again at once. A server process accepts, reads the request, works, sends the page, and waits for
//! the client's end of the connection before it closes its own (Apache's lingering close). The
//! client does not wait for that, so a busy server has processes that handle a request *and*
//! processes that clean up after one, both runnable.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use warmq_config::{Chosen, Setting};
use warmq_kernel::Workload;
use warmq_kernel::{Boot, Listener, Nic, Region, RemotePeer, Socket, Task, TaskSpec, Touch};
use warmq_machine::OutOfMemory;
use warmq_units::{Bytes, Cycles, Duration, Stream};

use crate::counter::{Counter, Counters};

const PAPER: &str = "coloring paper, how it was measured";
const OURS: &str = "assumed: the paper gives no figure";
/// Clients start spread over this time, so that they do not run in lockstep.
const START_WITHIN_US: u64 = 10_000;

pub(crate) fn settings() -> Vec<Setting> {
    let mut settings = server_settings();
    settings.extend(network_settings());
    settings
}

fn server_settings() -> Vec<Setting> {
    let kb = Bytes::from_kb;
    let none = Bytes(0);
    vec![
        Setting::count("processes", (1, 20_000), 256, "processes")
            .says("server processes (MaxClients)", PAPER),
        Setting::count("request_cycles", (0, 100_000_000), 200_000, "cycles").says(
            "work of a process from accepting a connection to sending the page, without its memory accesses",
            "calibrated on tables 4 and 6 of the coloring paper",
        ),
        Setting::count("cleanup_cycles", (0, 100_000_000), 70_000, "cycles").says(
            "work of a process after the page is sent: close, log, clear its pools",
            "calibrated on tables 4 and 6 of the coloring paper",
        ),
        Setting::bytes("private_memory", (kb(4), kb(65_536)), kb(128))
            .says("private memory of each process", OURS),
        Setting::bytes("private_touched", (none, kb(65_536)), kb(96)).says(
            "how much of it a request touches; a quarter is written",
            "calibrated on table 2 of the coloring paper",
        ),
        Setting::bytes("shared_memory", (kb(4), kb(65_536)), kb(96))
            .says("code and kernel data that every request touches", OURS),
        Setting::bytes("shared_touched", (none, kb(65_536)), kb(64)).says(
            "how much of it a request touches, all read",
            "calibrated on table 2 of the coloring paper",
        ),
        Setting::bytes("documents", (kb(64), kb(1 << 20)), kb(4_096)).says(
            "the pages that are served, in memory",
            "assumed: WebBench's static tree",
        ),
        Setting::bytes("page", (Bytes(1), kb(1_024)), kb(6)).says(
            "mean size of a page; sizes spread evenly from a quarter to seven quarters of it",
            "assumed: the mean of WebBench's static tree",
        ),
    ]
}

fn network_settings() -> Vec<Setting> {
    vec![
        Setting::count("clients", (1, 20_000), 256, "clients").says("client threads", PAPER),
        Setting::duration(
            "think",
            (Duration::ZERO, Duration::from_s(100)),
            Duration::ZERO,
        )
        .says(
            "a client's pause between two requests",
            "WebBench's default",
        ),
        Setting::count("cards", (1, 64), 4, "cards").says("network cards", PAPER),
        Setting::count("link_mbit", (1, 1_000_000), 1_000, "Mbit/s").says(
            "bandwidth of each card's link: 100 on machine A, 1000 on machine B",
            PAPER,
        ),
        Setting::duration(
            "delay",
            (Duration::ZERO, Duration::from_s(1)),
            Duration::from_us(100),
        )
        .says("one way through switch and client", OURS),
        Setting::bytes("request", (Bytes(1), Bytes::from_kb(64)), Bytes(300)).says(
            "size of a request",
            "assumed: WebBench's GET with its headers",
        ),
    ]
}

#[derive(Clone)]
pub(crate) struct Web {
    processes: u64,
    clients: u64,
    think: Duration,
    cards: u64,
    link_bits: u64,
    delay: Duration,
    request: Bytes,
    page: u64,
    documents: Bytes,
    private: Bytes,
    shared: Bytes,
    request_cycles: Cycles,
    cleanup_cycles: Cycles,
    private_touched: u64,
    shared_touched: u64,
    requests: Counter,
}

impl Web {
    pub(crate) fn new(chosen: &Chosen, counters: &Counters) -> Web {
        Web {
            processes: chosen.count("processes"),
            clients: chosen.count("clients"),
            think: chosen.duration("think"),
            cards: chosen.count("cards"),
            link_bits: chosen.count("link_mbit") * 1_000_000,
            delay: chosen.duration("delay"),
            request: chosen.bytes("request"),
            page: chosen.bytes("page").0,
            documents: chosen.bytes("documents"),
            private: chosen.bytes("private_memory"),
            shared: chosen.bytes("shared_memory"),
            request_cycles: Cycles(chosen.count("request_cycles")),
            cleanup_cycles: Cycles(chosen.count("cleanup_cycles")),
            private_touched: chosen.bytes("private_touched").0,
            shared_touched: chosen.bytes("shared_touched").0,
            requests: counters.counter("requests"),
        }
    }
}

/// What the server processes share.
struct Server {
    web: Web,
    line: u64,
    shared: Region,
    documents: Region,
    listener: Listener,
    /// The page that the client of each connection requests.
    asked: RefCell<BTreeMap<Socket, Page>>,
}

/// A page of the documents.
#[derive(Clone, Copy)]
struct Page {
    bytes: Bytes,
    first_line: u64,
}

impl Web {
    /// The page that a client requests next: its size is uniform from a quarter to seven quarters
    /// of the mean, its place uniform among the documents.
    fn next_page(&self, line: u64, wishes: &mut Stream) -> Page {
        let bytes = wishes
            .between(self.page.div_ceil(4), self.page * 7 / 4)
            .max(1);
        Page {
            bytes: Bytes(bytes),
            first_line: wishes.below(self.documents.0 / line),
        }
    }
}

impl Server {
    /// Touches `share` quarters of the memory that a request touches.
    async fn touch(&self, task: &Task, private: Region, share: u64) {
        let lines = self.web.private_touched / self.line * share / 4;
        let quarter = lines / 4;
        task.touch(Touch::read(
            self.shared,
            0,
            self.web.shared_touched / self.line * share / 4,
        ))
        .await;
        task.touch(Touch::read(private, 0, lines - quarter)).await;
        task.touch(Touch::read(private, lines - quarter, quarter).writing())
            .await;
    }
}

async fn serve(task: Task, server: Rc<Server>, private: Region) {
    loop {
        let connection = task.accept(server.listener).await;
        task.receive(connection, server.web.request).await;
        server.touch(&task, private, 3).await;
        task.compute(server.web.request_cycles).await;
        let page = server.asked.borrow()[&connection];
        let lines = page.bytes.0.div_ceil(server.line);
        task.touch(Touch::read(server.documents, page.first_line, lines))
            .await;
        task.send(connection, page.bytes).await;
        // Lingering close: waits until the client has closed its end.
        while task.receive(connection, server.web.request).await.0 > 0 {}
        server.touch(&task, private, 1).await;
        task.compute(server.web.cleanup_cycles).await;
        task.close(connection).await;
    }
}

async fn browse(client: RemotePeer, server: Rc<Server>, nic: Nic, mut wishes: Stream) {
    let web = &server.web;
    client
        .pause(Duration::from_us(wishes.below(START_WITHIN_US)))
        .await;
    loop {
        let page = web.next_page(server.line, &mut wishes);
        let connection = client.connect(server.listener, nic).await;
        server.asked.borrow_mut().insert(connection, page);
        client.send(connection, web.request).await;
        client.receive(connection, page.bytes).await;
        client.close(connection).await;
        web.requests.add(1);
        client.pause(web.think).await;
    }
}

impl Workload for Web {
    fn start(&self, boot: &mut Boot<'_>) -> Result<(), OutOfMemory> {
        let listener = boot.listener();
        let server = Rc::new(Server {
            web: self.clone(),
            line: boot.line(),
            shared: boot.region(self.shared)?,
            documents: boot.region(self.documents)?,
            listener,
            asked: RefCell::default(),
        });
        for _ in 0..self.processes {
            let (server, private) = (server.clone(), boot.region(self.private)?);
            let mm = boot.mm();
            let spec = TaskSpec::new("httpd", Some(mm));
            boot.task(spec, move |task: Task| serve(task, server, private))?;
        }
        let cards: Vec<Nic> = (0..self.cards)
            .map(|_| boot.nic(self.link_bits, self.delay))
            .collect();
        for client in 0..self.clients {
            let nic = cards[(client % self.cards) as usize];
            let wishes = boot.seed().stream(&format!("client {client}"));
            let server = server.clone();
            boot.remote(move |outside| browse(outside, server, nic, wishes));
        }
        Ok(())
    }
}
