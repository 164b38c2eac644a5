// Prints what the official parser of AsyncAPI says about a document, as JSON.
import { readFile } from "node:fs/promises";
import { Parser } from "@asyncapi/parser";

// The text alone, so that nothing outside it can be read.
const text = await readFile(process.argv[2], "utf8");
const { document, diagnostics } = await new Parser().parse(text);
const found = diagnostics.map(({ code, severity, message, path }) => ({ code, severity, message, path }));
const messages = document ? document.messages().all().map((message) => message.id()) : [];
const fields = document
  ? document.messages().all().map((message) => Object.keys(message.payload()?.properties() ?? {}).length)
  : [];
console.log(JSON.stringify({ diagnostics: found, messages, fields }));
