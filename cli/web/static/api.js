// Requests to this server. An error is a problem document, whose detail is meant to be read.

export async function ask(path, body, options = {}) {
  let answer;
  try {
    answer = await fetch(`/api/v1/${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: body === undefined || options.raw ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? undefined : options.raw ? body : JSON.stringify(body),
      signal: options.signal,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("the tokcast server does not answer: is `tokcast serve` still running?");
  }
  if (!answer.ok) {
    let detail = `${answer.status} ${answer.statusText}`;
    try {
      detail = (await answer.json()).detail;
    } catch { /* not a problem document */ }
    throw new Error(detail);
  }
  return options.text ? answer.text() : answer.json();
}

/** Return a function that runs the newest of the calls made to it, one at a time. */
export function latest(work) {
  let running = false, waiting = null;
  return async function call(...args) {
    if (running) {
      waiting = args;
      return;
    }
    running = true;
    try {
      await work(...args);
    } finally {
      running = false;
      if (waiting) {
        const next = waiting;
        waiting = null;
        call(...next);
      }
    }
  };
}
