//! s2check LIBRARY SCENARIO loom|random|pct [options]: run the kernel's code through a scenario.
//!
//! The last line is for scripts: fields that are separated by tabs.

#![allow(static_mut_refs, function_casts_as_integer)]

mod arms;
mod calibration;
mod code;
mod cpu;
mod engine;
mod host;
mod kernel;
mod memory;
mod scenarios;
mod scenarios_x86;
mod state;
mod sync;
mod trace;

use kernel::kernel;
use scenarios::Scenario;
use state::{st, Engine};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static RUNS: AtomicUsize = AtomicUsize::new(0);
const STACK: usize = 1 << 16;

fn execution(sc: &'static Scenario, eng: Engine) {
    RUNS.fetch_add(1, Relaxed);
    state::reset(Engine::Raw);
    memory::reset();
    sync::reset();
    cpu::reset();
    host::reset();
    scenarios_x86::begin();
    cpu::cpus().ha = sc.ha;
    if let Some(f) = kernel().use_tlb_range { f(sc.range as i32) }
    host::host().thp = sc.thp;
    st().threads = sc.threads.len();
    st().guests = !sc.is_litmus();
    if let (Some(mode), Some(set)) = (sc.x86, kernel().mode) { set(mode, sc.threads.len() as i32) }
    (sc.setup)();
    if sc.x86.is_some() && !host::host().cold { for v in 0..sc.threads.len() { (kernel().topup)(v as i32) } }
    st().eng = eng;
    st().trace.clear();
    st().setting_up = false;
    engine::begin();
    cpu::begin();
    let body = |i: usize, f: fn()| move || {
        st().cur = i;
        f();
        memory::flush();
    };
    if eng == Engine::Loom {
        let t: Vec<_> = sc.threads.iter().enumerate()
            .map(|(i, f)| loom::thread::Builder::new().stack_size(STACK).spawn(body(i, *f)).unwrap()).collect();
        for t in t { t.join().unwrap() }
    } else {
        let t: Vec<_> = sc.threads.iter().enumerate().map(|(i, f)| shuttle::thread::spawn(body(i, *f))).collect();
        for t in t { t.join().unwrap() }
    }
    st().cur = sc.threads.len().min(state::THREADS - 1);
    engine::end();
    st().eng = Engine::Raw;
    if sc.is_litmus() { return (sc.check)() }
    arms::add();
    (sc.check)();
    sync::finish();
    if kernel().x86 { scenarios_x86::check_always() } else { scenarios::check_always() }
}

/// Which words, locks and steps do the threads share? What this misses is learnt later, at the price of a restart.
fn discover(sc: &'static Scenario) {
    st().discovering = true;
    let _ = catch(|| shuttle_run(sc, shuttle::scheduler::RandomScheduler::new_from_seed(1, 60)));
    st().discovering = false;
    MESSAGE.lock().unwrap().take();
    *trace::FAILED.lock().unwrap() = None;
    arms::clear();
}

fn shuttle_run(sc: &'static Scenario, s: impl shuttle::scheduler::Scheduler + 'static) {
    let mut config = shuttle::Config::new();
    config.stack_size = STACK;
    config.silence_warnings = true;
    config.failure_persistence = shuttle::FailurePersistence::None;
    config.max_steps = shuttle::MaxSteps::FailAfter(1_000_000);
    shuttle::Runner::new(s, config).run(move || execution(sc, Engine::Shuttle));
}

fn catch(f: impl FnOnce()) -> Result<(), ()> { std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).map_err(|_| ()) }

struct Options { engine: String, bound: Option<usize>, limit: usize, seconds: u64, seed: u64, depth: usize, trace: bool }

fn search(sc: &'static Scenario, o: &Options) -> (Result<(), ()>, u32) {
    discover(sc);
    let mut restarts = 0;
    loop {
        RUNS.store(0, Relaxed);
        arms::clear();
        st().ops = 0;
        let result = catch(|| match o.engine.as_str() {
            "loom" => {
                let mut b = loom::model::Builder::new();
                b.max_branches = 100_000;
                b.preemption_bound = o.bound;
                b.max_permutations = (o.limit != 0).then_some(o.limit);
                b.max_duration = (o.seconds != 0).then(|| std::time::Duration::from_secs(o.seconds));
                b.check(move || execution(sc, Engine::Loom))
            }
            "random" => shuttle_run(sc, shuttle::scheduler::RandomScheduler::new_from_seed(o.seed, o.limit)),
            _ => shuttle_run(sc, shuttle::scheduler::PctScheduler::new_from_seed(o.seed, o.depth, o.limit)),
        });
        let message = MESSAGE.lock().unwrap().take();
        let learnt = message.as_ref().is_some_and(|m| m.contains("RESTART"));
        if result.is_err() && learnt && restarts < 2000 { restarts += 1; continue }
        *MESSAGE_KEPT.lock().unwrap() = message;
        return (result, restarts);
    }
}

static MESSAGE: std::sync::Mutex<Option<String>> = std::sync::Mutex::new(None);

fn quiet() {
    std::panic::set_hook(Box::new(|i| {
        let p = i.payload();
        let text = p.downcast_ref::<String>().cloned().or(p.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_default();
        let mut m = MESSAGE.lock().unwrap();
        if m.is_none() && !text.is_empty() { *m = Some(format!("{text} ({})", i.location().map_or(String::new(), |l| l.to_string()))) }
    }));
}

fn options(args: &[String]) -> Result<Options, String> {
    let mut o = Options { engine: args[2].clone(), bound: None, limit: 0, seconds: 0, seed: 1, depth: 5, trace: false };
    if !["loom", "random", "pct"].contains(&args[2].as_str()) { return Err(format!("unknown engine '{}'", args[2])) }
    for a in &args[3..] {
        let (name, value) = a.split_once('=').unwrap_or((a, ""));
        let n = || value.parse::<u64>().map_err(|_| format!("{name}: '{value}' is no number"));
        match name {
            "bound" => o.bound = Some(n()? as usize),
            "limit" => o.limit = n()? as usize,
            "seconds" => o.seconds = n()?,
            "seed" => o.seed = n()?,
            "depth" => o.depth = n()? as usize,
            "trace" => o.trace = true,
            _ => return Err(format!("unknown option '{name}'")),
        }
    }
    if o.engine != "loom" && o.limit == 0 { return Err("random and pct need limit=N".into()) }
    Ok(o)
}

fn all() -> impl Iterator<Item = &'static Scenario> { scenarios::SCENARIOS.iter().chain(scenarios_x86::SCENARIOS).chain(calibration::LITMUS) }

fn list() {
    for s in all() {
        let kind = if s.is_litmus() { "litmus" } else if s.long { "long" } else { "short" };
        println!("{}\t{kind}\t{}\t{}\t{}", s.name, s.bound.map_or("all".into(), |b| b.to_string()), s.threads.len(), s.arches().join(","))
    }
}

fn run(args: &[String]) -> Result<bool, String> {
    if args.len() < 3 { return Err("usage: s2check LIBRARY SCENARIO loom|random|pct [bound=N] [limit=N] [seconds=N] [seed=N] [depth=N] [trace]".into()) }
    let o = options(args)?;
    let sc = all().find(|s| s.name == args[1]).ok_or(format!("no scenario '{}'", args[1]))?;
    if sc.long && o.engine == "loom" { return Err(format!("{} is too long for loom", sc.name)) }
    code::open(&args[0])?;
    if !sc.arches().contains(&kernel().arch()) && !(kernel().rfc && sc.arches().contains(&"arm64-v7.3")) { return Err(format!("{} is of {}, and {} is not", sc.name, sc.arches().join(" and "), args[0])) }
    quiet();
    let time = std::time::Instant::now();
    let (result, restarts) = search(sc, &o);
    let n = RUNS.load(Relaxed);
    let seconds = time.elapsed().as_secs_f64();
    let stopped = o.engine == "loom" && (o.limit != 0 && n >= o.limit || o.seconds != 0 && seconds >= o.seconds as f64);
    let failed = trace::FAILED.lock().unwrap().clone();
    if result.is_err() && o.trace { trace::print() }
    let (verdict, invariant, text) = match (&result, failed) {
        (Err(()), Some((i, t))) => ("found", i, t),
        // What the scenario begins with is not there: an assertion of its setup.
        (Err(()), None) if st().setting_up => ("nothing", "the setup".into(), MESSAGE_KEPT.lock().unwrap().clone().unwrap_or_default()),
        (Err(()), None) => ("engine", String::new(), MESSAGE_KEPT.lock().unwrap().clone().unwrap_or_default()),
        (Ok(()), _) if st().ops == 0 => ("nothing", "a thread that has something to do".into(), String::new()),
        (Ok(()), _) => match sc.must.iter().find(|m| arms::count(m) == Some(0)) {
            Some(m) => ("nothing", m.to_string(), "has shown nothing: never reached".into()),
            None => (if stopped { "stopped" } else { "holds" }, String::new(), String::new()),
        },
    };
    println!("{verdict}\t{}\t{n}\t{seconds:.2}\t{}\t{}\t{restarts}\t{invariant}\t{}\t{}", sc.name, st().ops / n.max(1) as u64,
        st().word_address.len(), text.replace(['\n', '\t'], " "), arms::reached().join("; "));
    Ok(verdict == "holds" || verdict == "stopped")
}

static MESSAGE_KEPT: std::sync::Mutex<Option<String>> = std::sync::Mutex::new(None);

fn main() {
    memory::assert_sane();
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|a| a == "list") { return list() }
    match run(&args) {
        Ok(good) => std::process::exit(!good as i32),
        Err(text) => { eprintln!("s2check: {text}"); std::process::exit(2) }
    }
}
