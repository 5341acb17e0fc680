// What to say of an answer: verified and how, or what is missing.

const many = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
const sentence = (text) => (text.startsWith("no ") ? text[0].toUpperCase() + text.slice(1) : `It ${text}`);

// Returns [kind, title, more].
export function verdict(result) {
  const note = result.note || "";
  const time = `${result.ms < 10 ? result.ms.toFixed(1) : Math.round(result.ms).toLocaleString("en")} ms of one core`;
  if (result.verified) {
    const how = { exact: "by the exact solver", search: "by search" }[result.method] || `in ${many(result.steps, "recurrence")}`;
    const read = result.read ? "The board keeps every rule, with the givens as they were read. " : "";
    const after = result.method === "recurrence" ? "" : `After ${many(result.steps, "recurrence")}. `;
    return ["good", `Verified ${how}`, `${read}${note ? `But it ${note}. ` : ""}${after}${time}.`];
  }
  if (result.method === "none") return ["bad", "No solution", `The checker and a search agree: it ${note}.`];
  const rules = result.broken.slice(0, 3).map((one) => one.rule).join("; ");
  const rest = result.broken.length > 3 ? `, and ${result.broken.length - 3} more` : "";
  return ["warn", "Not verified", `${note ? `${sentence(note)}. ` : ""}${rules ? `Missing: ${rules}${rest}.` : ""}`];
}

// How far a recurrence is from the last one.
export function onTheWay(frame, last) {
  const differ = frame.values.filter((value, place) => value !== last.values[place]).length;
  const share = `${differ} of ${many(frame.values.length, "value")} still change${differ === 1 ? "s" : ""}`;
  return ["", `After recurrence ${frame.step}`, differ ? `${share} from here on.` : "All values are as in the end."];
}
