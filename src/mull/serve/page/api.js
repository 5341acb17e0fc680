// Talking to the server: JSON, and the stream of recurrences.

async function answer(response) {
  const data = await response.json().catch(() => ({ detail: `the server said ${response.status}` }));
  if (!response.ok) throw new Error(data.detail || `the server said ${response.status}`);
  return data;
}

export async function get(path, query = {}) {
  return answer(await fetch(`${path}?${new URLSearchParams(query)}`));
}

export async function post(path, body, signal) {
  const headers = { "content-type": "application/json" };
  return answer(await fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal }));
}

export async function postFile(path, file) {
  return answer(await fetch(path, { method: "POST", headers: { "content-type": file.type }, body: file }));
}

// Calls `tell(name, data)` for each server-sent event.
export async function stream(path, body, tell, signal) {
  const headers = { "content-type": "application/json" };
  const response = await fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal });
  if (!response.ok) return answer(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return undefined;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const [, name, data] = event.match(/^event: (.*)\ndata: (.*)$/s);
      tell(name, JSON.parse(data));
    }
  }
}
