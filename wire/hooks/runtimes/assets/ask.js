const PATIENCE = 20_000

function ask(directory, event, told, patience = PATIENCE) {
  const state = { child: null, text: null }
  state.text = new Promise((resolve) => {
    let said = ""
    let child
    try {
      child = spawn("wire", ["hook", RUNTIME, event], { cwd: directory, stdio: ["pipe", "pipe", "ignore"] })
    } catch {
      resolve("")
      return
    }
    // One that did not start has no id of its own, and to kill it would kill whatever a stray number means.
    if (child.pid) state.child = child
    const timer = patience ? setTimeout(() => state.child?.kill(), patience) : null
    child.stdout.setEncoding("utf8")
    child.stdout.on("data", (part) => (said += part))
    child.stdin.on("error", () => {})
    child.on("error", () => {
      if (timer) clearTimeout(timer)
      resolve("")
    })
    child.on("close", () => {
      if (timer) clearTimeout(timer)
      try {
        resolve(said.trim() ? String(JSON.parse(said).text ?? "") : "")
      } catch {
        resolve("")
      }
    })
    child.stdin.end(JSON.stringify(told))
  })
  return state
}
