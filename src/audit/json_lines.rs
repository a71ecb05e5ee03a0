//! An append-only file of records.

use std::{
    fmt,
    fs::{File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write},
    mem,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use super::{AuditRecord, AuditSink};
use crate::events;

/// Writes each record as one line of JSON, in one write that is followed by a flush.
///
/// A process that is killed between two records leaves whole lines, and so do several processes that append to one file of
/// a local disk. For the loss of power, `W` is to sync in its `flush`; a [`File`] doesn't.
///
/// The write happens where the call's future is polled or dropped, and calls that end at the same time wait for each
/// other. A line has some hundred bytes, so that is microseconds on a local disk. For a disk that may stall, write a `W`
/// or an [`AuditSink`] that hands the lines to a thread: what it holds is then lost in a kill.
///
/// A record that can't be written is lost. That is an event (feature `tracing`), counts as one of the
/// [`failures`](Self::failures), and refuses executions until a record is written again, unless
/// [`OnSinkFailure::Continue`](super::OnSinkFailure::Continue) is set. What a failed write left of a line is ended by the
/// next one, so that whatever follows stands on lines of its own.
///
/// Clones share the writer.
pub struct JsonLines<W> {
    shared: Arc<Shared<W>>,
}

struct Shared<W> {
    state: Mutex<State<W>>,
    failures: AtomicU64,
    is_failing: AtomicBool,
}

struct State<W> {
    to: W,
    line: Vec<u8>,
    // The last line may lack its end.
    is_torn: bool,
}

impl JsonLines<File> {
    /// Appends to the file at `path`, which is created if it doesn't exist, for nobody but its owner to read (on Unix).
    ///
    /// # Errors
    ///
    /// If the file can't be opened.
    pub fn append(path: impl AsRef<Path>) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        let is_torn = ends_within_a_line(&mut file)?;
        Ok(Self::with(file, is_torn))
    }
}

/// Whether the last byte of `file`, if it has one, ends no line. A pipe has none that could be read again.
fn ends_within_a_line(file: &mut File) -> io::Result<bool> {
    if !file.metadata()?.is_file() || file.seek(SeekFrom::End(0))? == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

impl<W> JsonLines<W> {
    /// Writes to `to`.
    pub fn new(to: W) -> Self {
        Self::with(to, false)
    }

    fn with(to: W, is_torn: bool) -> Self {
        let state = Mutex::new(State { to, line: Vec::new(), is_torn });
        let shared = Shared { state, failures: AtomicU64::new(0), is_failing: AtomicBool::new(false) };
        Self { shared: Arc::new(shared) }
    }

    /// How many records were lost.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.shared.failures.load(Ordering::Relaxed)
    }
}

impl<W: Write> State<W> {
    fn write(&mut self, record: &AuditRecord) -> io::Result<()> {
        self.line.clear();
        if self.is_torn {
            self.line.push(b'\n');
        }
        serde_json::to_writer(&mut self.line, record)?;
        self.line.push(b'\n');
        // Nobody knows what a writer that panics has written.
        let was_torn = mem::replace(&mut self.is_torn, true);
        let mut rest = &*self.line;
        while !rest.is_empty() {
            let error = match self.to.write(rest) {
                Ok(0) => io::ErrorKind::WriteZero.into(),
                Ok(written) => {
                    rest = rest.get(written..).unwrap_or_default();
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => error,
            };
            self.is_torn = was_torn || rest.len() < self.line.len();
            return Err(error);
        }
        self.is_torn = false;
        self.to.flush()
    }
}

impl<W: Write + Send> AuditSink for JsonLines<W> {
    fn record(&self, record: &AuditRecord) {
        let written = {
            let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
            let written = state.write(record);
            // Before the next one writes, or an old success could hide a new failure.
            self.shared.is_failing.store(written.is_err(), Ordering::Release);
            written
        };
        if let Err(error) = written {
            let failures = self.shared.failures.fetch_add(1, Ordering::Relaxed) + 1;
            events::audit_record_lost(&error, failures);
        }
    }

    fn is_failing(&self) -> bool {
        self.shared.is_failing.load(Ordering::Acquire)
    }
}

impl<W> Clone for JsonLines<W> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<W> fmt::Debug for JsonLines<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonLines").field("failures", &self.failures()).finish_non_exhaustive()
    }
}
