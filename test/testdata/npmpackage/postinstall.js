// What a package's script may do: write beneath its own directory, start programs, and nothing outside.
const fs = require("fs");
const { execFileSync } = require("child_process");
fs.writeFileSync("installed.txt", execFileSync("echo", ["by a script"]));
try {
  fs.writeFileSync(process.env.OUTSIDE, "escaped");
} catch (e) {
  fs.writeFileSync("refused.txt", e.code);
}
