// Calls the API through types that were generated from its OpenAPI document: type-checked, then run.
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

const [url, token] = process.argv.slice(2);
const api = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${token}` } });

function check(held: unknown, what: string): asserts held {
  if (!held) throw new Error(what);
}

const job: components["schemas"]["JobDocument"] = {
  name: "from-typescript",
  type: "http",
  schedule: { cron: "0 9 * * 1", timezone: "Europe/Berlin" },
  retry: { max_retries: 5, delay_seconds: 10 },
  labels: { team: "billing" },
  payload: { url: "https://internal.example.com/send" },
};

const made = await api.POST("/v1/jobs", { body: job });
check(made.data?.created === true && made.response.status === 202, "the job is created");
const id: string = made.data.id;

const read = await api.GET("/v1/jobs/{job_id}", { params: { path: { job_id: id } } });
check(read.data?.state === "active", "the job is active");
check((read.data.document["labels"] as Record<string, string>)["team"] === "billing", "labels are stored");
const tag: string | null = read.response.headers.get("ETag");
check(tag, "a job has an ETag");

const second = await api.POST("/v1/jobs", { body: { ...job, name: "from-typescript-2" } });
check(second.data, "a second job is created");
const names: (string | null)[] = [];
let cursor: string | null | undefined = undefined;
do {
  const page: { data?: components["schemas"]["JobPage"] } = await api.GET("/v1/jobs", {
    params: { query: { limit: 1, ...(cursor ? { cursor } : {}) } },
  });
  check(page.data?.items.length === 1, "a page of one job");
  names.push(...page.data.items.map((item) => item.name));
  cursor = page.data.next_cursor;
} while (cursor);
check(names.sort().join() === "from-typescript,from-typescript-2", `both are listed: ${names.join()}`);

const change = { params: { path: { job_id: id }, header: { "If-Match": tag } }, body: { ...job, max_retries: undefined, owner: "billing" } };
const replaced = await api.PUT("/v1/jobs/{job_id}", change);
check(replaced.data?.version === 2, `the job is replaced: ${JSON.stringify(replaced.error)}`);
const stale = await api.PUT("/v1/jobs/{job_id}", change);
check(stale.error?.type === "urn:noonmark:problem:changed-since" || stale.response.status === 412, "a stale ETag is refused");
check(stale.error?.status === 412, "as a problem document");

const refused = await api.POST("/v1/jobs", { body: { ...job, name: "bad", schedule: "61 * * * *" } });
check(refused.error?.errors?.[0]?.pointer.startsWith("/schedule"), "a problem points at the field");
console.log("ok");
