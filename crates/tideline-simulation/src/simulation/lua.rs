//! The shipped functions, run by Lua 5.1 as a server runs them: `redis.call` works on the bucket of the call.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;
use std::rc::Rc;

use mlua::{Lua, MultiValue, Table, Value};
use sha1::{Digest as _, Sha1};

use super::data::{Bytes, Data, Done, Out};
use super::mutations;
use crate::keys::slot_of_key;

/// What a running function works on.
#[derive(Default)]
pub(super) struct Call {
    pub(super) data: Data,
    pub(super) slot: u16,
    pub(super) now_us: u64,
    pub(super) declared: Vec<Bytes>,
    /// Declared keys that are at the source of a slot that moves: once they are gone nobody can ask for them there.
    pub(super) leaving: Vec<Bytes>,
    /// Of a slot that moves: which keys are at the target.
    pub(super) moved: Option<super::moving::Moving>,
    /// Its command with that number fails.
    pub(super) fails_at: Option<u32>,
    /// Commands so far.
    pub(super) commands: u32,
    /// Whether one of them was made to fail.
    pub(super) has_failed: bool,
}

/// Where a function calls a command: the function's name, the line of the code.
pub(super) type Site = (String, usize);

/// Those that were reached while commands may fail, and how often each has failed.
pub(super) type Sites = BTreeMap<Site, u64>;

struct Library {
    rules_out: Vec<&'static str>,
    code: String,
    lua: Lua,
    functions: HashMap<String, mlua::Function>,
}

thread_local! {
    static CALL: RefCell<Call> = RefCell::default();
    static NAME: RefCell<String> = RefCell::default();
    static SITES: RefCell<Sites> = RefCell::default();
    static FAILS_FIRST: RefCell<Option<Site>> = const { RefCell::new(None) };
    static LIBRARY: RefCell<Option<Rc<Library>>> = const { RefCell::new(None) };
}

/// Loads the functions, with these rules taken out.
pub(super) fn load(rules_out: &[&'static str]) {
    let is_there =
        LIBRARY.with_borrow(|library| library.as_ref().is_some_and(|library| library.rules_out == rules_out));
    if !is_there {
        let loaded = loaded(rules_out).unwrap_or_else(|e| panic!("the functions can't be loaded: {e}"));
        LIBRARY.set(Some(Rc::new(loaded)));
    }
}

fn loaded(rules_out: &[&'static str]) -> mlua::Result<Library> {
    let lua = Lua::new();
    let found: Rc<RefCell<Vec<(String, mlua::Function)>>> = Rc::default();
    let redis = lua.create_table()?;
    let registered = found.clone();
    redis.set(
        "register_function",
        lua.create_function(move |_, about: Table| {
            registered.borrow_mut().push((about.get("function_name")?, about.get("callback")?));
            Ok(())
        })?,
    )?;
    redis.set(
        "call",
        lua.create_function(|lua, args: MultiValue| to_lua(lua, called(lua, args)?).map(|v| v.0))?,
    )?;
    redis.set(
        "sha1hex",
        lua.create_function(|_, text: mlua::String| {
            let digest: [u8; 20] = Sha1::digest(text.as_bytes().as_ref()).into();
            Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        })?,
    )?;
    redis.set(
        "pcall",
        lua.create_function(|lua, args: MultiValue| match called(lua, args) {
            Ok(out) => to_lua(lua, out).map(|v| v.0),
            Err(e) => {
                let table = lua.create_table()?;
                table.set("err", message(&e))?;
                Ok(Value::Table(table))
            }
        })?,
    )?;
    // The server takes the line out of a table that `pcall` gave.
    let error = lua.create_function(|_, thrown: Value| -> mlua::Result<()> {
        let line = thrown.as_table().and_then(|table| table.get("err").ok());
        let line = line.map_or_else(|| thrown.to_string(), Ok)?;
        Err(mlua::Error::RuntimeError(line))
    })?;
    lua.globals().set("error", error)?;
    let packing = lua.create_table()?;
    packing.set("pack", lua.create_function(|lua, args: MultiValue| pack(lua, args))?)?;
    packing.set("unpack", lua.create_function(|_, args: MultiValue| unpack(&args))?)?;
    lua.globals().set("redis", redis)?;
    lua.globals().set("struct", packing)?;
    let code = mutations::patched(&crate::functions::code(), rules_out);
    lua.load(crate::functions::with_letters(&code)).exec()?;
    lua.globals().get::<Table>("redis")?.set("register_function", Value::Nil)?;
    let functions = found.take().into_iter().collect();
    Ok(Library { rules_out: rules_out.to_vec(), code, lua, functions })
}

/// Takes what was noted of places where commands may fail.
pub(super) fn take_sites() -> Sites {
    SITES.take()
}

/// In the next history on this thread the command there fails the first time that it is reached.
pub(super) fn fail_first(site: Site) {
    FAILS_FIRST.set(Some(site));
}

/// The command in that line of a function's code fails once.
pub(super) fn fail_once(function: &str, line: &str) {
    let Some(library) = LIBRARY.with_borrow(Clone::clone) else { panic!("no functions are loaded") };
    let mut places = library.code.lines().zip(1..).filter(|(text, _)| text.contains(line));
    let (Some((_, at)), None) = (places.next(), places.next()) else { panic!("`{line}` stands there once") };
    fail_first((function.to_owned(), at));
}

/// The lines that call commands, with their text.
pub(super) fn commands() -> Vec<(usize, String)> {
    let Some(library) = LIBRARY.with_borrow(Clone::clone) else { panic!("no functions are loaded") };
    // Also where `redis.call` has another name.
    let calls = |text: &str| text.contains("call('");
    let lines = (1..).zip(library.code.lines()).filter(|(_, text)| calls(text) && !text.starts_with("--"));
    // The time can't fail.
    let lines = lines.filter(|(_, text)| !text.contains("redis.call('TIME')"));
    lines.map(|(line, text)| (line, text.trim().to_owned())).collect()
}

/// The lines of a function.
pub(super) fn lines_of(function: &str) -> RangeInclusive<usize> {
    let Some(library) = LIBRARY.with_borrow(Clone::clone) else { panic!("no functions are loaded") };
    let head = format!("local function {function}(");
    let mut lines = (1..).zip(library.code.lines()).skip_while(|(_, text)| !text.starts_with(&head));
    let (Some((first, _)), Some((last, _))) = (lines.next(), lines.find(|(_, text)| *text == "end")) else {
        panic!("there is no function {function}")
    };
    first..=last
}

/// Whether some command is still to fail, whatever fails at random.
pub(super) fn has_to_fail() -> bool {
    FAILS_FIRST.with_borrow(Option::is_some)
}

/// Runs a function. Gives its answer, the data as it left them, and whether one of its commands was made to fail.
pub(super) fn run(call: Call, name: &str, keys: &[&[u8]], args: &[&[u8]]) -> (Done, Data, bool) {
    let Some(library) = LIBRARY.with_borrow(Clone::clone) else { panic!("no functions are loaded") };
    let Some(function) = library.functions.get(name) else { panic!("there is no function {name}") };
    CALL.set(call);
    NAME.set(name.split_once('_').map_or_else(String::new, |(_, name)| name.to_owned()));
    let lua = &library.lua;
    let list = |items: &[&[u8]]| {
        lua.create_sequence_from(items.iter().map(|item| lua.create_string(item).expect("memory")))
    };
    let answer =
        list(keys).and_then(|keys| Ok((keys, list(args)?))).and_then(|given| function.call::<Value>(given));
    let done = match answer {
        Ok(value) => from_lua(&value),
        Err(e) => Err(message(&e)),
    };
    let call = CALL.take();
    (done, call.data, call.has_failed)
}

/// The server's error line in an error of Lua.
fn message(error: &mlua::Error) -> String {
    match error {
        mlua::Error::CallbackError { cause, .. } => message(cause),
        mlua::Error::RuntimeError(text) => text.clone(),
        other => format!("ERR {other}"),
    }
}

/// What a server answers where a function touches a key that is not there while its slot moves.
const NOT_HERE: &str = "ERR Script attempted to access a non local key in a cluster node";

/// Whether the command of a call that comes now fails. Notes where that is.
fn fails(lua: &Lua, call: &mut Call) -> bool {
    let Some(at) = call.fails_at else { return false };
    call.commands += 1;
    let line = lua.inspect_stack(1, |caller| caller.current_line()).flatten().unwrap_or_default();
    let site = (NAME.with_borrow(Clone::clone), line);
    let is_named = FAILS_FIRST.with_borrow(|first| first.as_ref() == Some(&site));
    if is_named {
        FAILS_FIRST.set(None);
    }
    let has_failed = is_named || call.commands == at;
    call.has_failed |= has_failed;
    SITES.with_borrow_mut(|sites| *sites.entry(site).or_default() += u64::from(has_failed));
    has_failed
}

fn called(lua: &Lua, args: MultiValue) -> mlua::Result<Out> {
    let args: Vec<Bytes> = args.iter().map(argument).collect::<mlua::Result<_>>()?;
    let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
    CALL.with_borrow_mut(|call| {
        if args.first() == Some(&&b"TIME"[..]) {
            let part = |n: u64| Out::Bulk(n.to_string().into_bytes());
            return Ok(Out::Items(vec![part(call.now_us / 1_000_000), part(call.now_us % 1_000_000)]));
        }
        if fails(lua, call) {
            return Err(NOT_HERE.to_owned());
        }
        let first_key = args.get(1).copied().unwrap_or_default();
        assert_eq!(slot_of_key(first_key), call.slot, "a function touches a key of another slot: {args:?}");
        if !call.data.has(first_key) && call.leaving.iter().any(|key| key == first_key) {
            return Err(NOT_HERE.to_owned());
        }
        if let Some(moved) = &call.moved
            && !call.declared.iter().any(|key| key == first_key)
            && (!call.data.has(first_key) || moved.has(first_key))
        {
            return Err(NOT_HERE.to_owned());
        }
        call.data.run(&args)
    })
    .map_err(mlua::Error::RuntimeError)
}

fn argument(value: &Value) -> mlua::Result<Bytes> {
    match value {
        Value::String(text) => Ok(text.as_bytes().to_vec()),
        Value::Integer(n) => Ok(n.to_string().into_bytes()),
        // As the server spells them: 17 digits.
        Value::Number(n) if n.fract() == 0.0 && n.abs() < 1e17 => Ok(format!("{n:.0}").into_bytes()),
        Value::Number(n) => Ok(format!("{n:.17e}").into_bytes()),
        other => Err(mlua::Error::RuntimeError(format!("ERR an argument of redis.call is {other:?}"))),
    }
}

/// An answer as a function sees it.
struct Lua51(Value);

fn to_lua(lua: &Lua, out: Out) -> mlua::Result<Lua51> {
    Ok(Lua51(match out {
        Out::Nil => Value::Boolean(false),
        Out::Int(n) => Value::Integer(n),
        Out::Bulk(bytes) => Value::String(lua.create_string(bytes)?),
        Out::Line(line) => {
            let table = lua.create_table()?;
            table.set("ok", line)?;
            Value::Table(table)
        }
        Out::Items(items) => {
            let items = items.into_iter().map(|item| Ok(to_lua(lua, item)?.0));
            Value::Table(lua.create_sequence_from(items.collect::<mlua::Result<Vec<_>>>()?)?)
        }
    }))
}

/// What a function returns, as a client sees it.
fn from_lua(value: &Value) -> Done {
    Ok(match value {
        Value::Nil | Value::Boolean(false) => Out::Nil,
        Value::Boolean(true) => Out::Int(1),
        Value::Integer(n) => Out::Int(*n),
        #[expect(clippy::cast_possible_truncation, reason = "as the server does")]
        Value::Number(n) => Out::Int(n.trunc() as i64),
        Value::String(text) => Out::Bulk(text.as_bytes().to_vec()),
        Value::Table(table) => {
            if let Ok(Value::String(line)) = table.get("err") {
                return Err(line.to_string_lossy());
            }
            let mut items = Vec::new();
            for at in 1.. {
                let item: Value = table.get(at).map_err(|e| message(&e))?;
                if item.is_nil() {
                    break;
                }
                items.push(from_lua(&item)?);
            }
            Out::Items(items)
        }
        other => return Err(format!("ERR a function returned {other:?}")),
    })
}

/// `struct.pack` of big-endian unsigned integers.
fn pack(lua: &Lua, args: MultiValue) -> mlua::Result<mlua::String> {
    let mut args = args.into_iter();
    let format = args.next().and_then(|f| f.to_string().ok()).unwrap_or_default();
    let mut packed = Vec::new();
    for part in parts_of(&format) {
        let (letter, width) = part.split_at(1);
        let number = args.next();
        if letter == "d" {
            let number = match number {
                Some(Value::Number(n)) => n,
                #[expect(clippy::cast_precision_loss, reason = "it was a double")]
                Some(Value::Integer(n)) => n as f64,
                _ => return Err(mlua::Error::RuntimeError("ERR packs no number".into())),
            };
            packed.extend_from_slice(&number.to_be_bytes());
            continue;
        }
        let width: usize =
            width.parse().map_err(|_| mlua::Error::RuntimeError(format!("ERR format {format}")))?;
        let number = match number {
            Some(Value::Integer(n)) => u64::try_from(n).ok(),
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "just looked at")]
            Some(Value::Number(n)) if n >= 0.0 && n.fract() == 0.0 && n < 2f64.powi(53) => Some(n as u64),
            _ => None,
        };
        let number = number.ok_or_else(|| mlua::Error::RuntimeError("ERR packs no whole number".into()))?;
        packed.extend_from_slice(&number.to_be_bytes()[8 - width..]);
    }
    lua.create_string(packed)
}

/// The letters of a format, with their widths.
fn parts_of(format: &str) -> impl Iterator<Item = &str> {
    let all = format.strip_prefix('>').expect("big-endian");
    all.split_inclusive(|c: char| c.is_ascii_digit() || c == 'B' || c == 'd')
}

/// `struct.unpack` of big-endian numbers: doubles, integers with and without a sign.
fn unpack(args: &MultiValue) -> mlua::Result<MultiValue> {
    let given: Vec<&Value> = args.iter().collect();
    let [Value::String(format), Value::String(text), ..] = given.as_slice() else {
        return Err(mlua::Error::RuntimeError("ERR unpack takes two strings".into()));
    };
    let (format, text) = (format.to_string_lossy(), text.as_bytes());
    let from = given.get(2).and_then(|from| from.as_usize()).unwrap_or(1);
    let (mut numbers, mut at) = (Vec::new(), from - 1);
    for part in parts_of(&format) {
        let (letter, width) = part.split_at(1);
        let width = match letter {
            "B" => 1,
            "d" => 8,
            _ => width.parse().expect("a width of one digit"),
        };
        let Some(bytes) = text.get(at..at + width) else {
            return Err(mlua::Error::RuntimeError("ERR data too short".into()));
        };
        at += width;
        let number = bytes.iter().fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
        numbers.push(match letter {
            "d" => Value::Number(f64::from_bits(number)),
            "i" => Value::Integer((number << (64 - 8 * width)).cast_signed() >> (64 - 8 * width)),
            _ => Value::Integer(number.cast_signed()),
        });
    }
    numbers.push(Value::Integer(1 + i64::try_from(at).expect("few")));
    Ok(MultiValue::from_iter(numbers))
}
