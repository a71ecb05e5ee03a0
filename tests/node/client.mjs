// A client on the TypeScript SDK: lists, calls and executes twice at URL, and prints what its user gets, as JSON.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const EXECUTE = {
  decision_id: "decision-7",
  webhook_url: "https://hooks.example/algenta",
  force: true,
  overrideSafety: true,
};

const client = new Client({ name: "clients", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2])));

async function attempt(name, args) {
  try {
    const result = await client.callTool({ name, arguments: args });
    return ["result", JSON.stringify(result)];
  } catch (error) {
    return ["failure", `${error.name}: ${error.message}`];
  }
}

const { tools } = await client.listTools();
const played = {
  names: tools.map((tool) => tool.name).sort(),
  schemas: JSON.stringify(tools),
  simulate: await attempt("simulate", { scenario: "expand-to-eu" }),
  execute: await attempt("execute_decision", EXECUTE),
  again: await attempt("execute_decision", EXECUTE),
  excluded: await attempt("query_batch", {}),
};
console.log(JSON.stringify(played));
await client.close();
