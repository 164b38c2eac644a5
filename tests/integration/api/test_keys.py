"""Keys, the audit log and `me` over the API."""

from noonmark.core.access.submission_signature import PublisherKey


def made(api, status=201, *, key=None, **body):
    return api("POST", "/v1/keys", status, key=key, json={"name": "ci", **body}).json()


def test_a_key_is_made_used_and_revoked(api):
    key = made(api, grants={"billing": "editor"})

    me = api("GET", "/v1/me", 200, key=key["token"]).json()
    assert me["id"] == f"key:{key['key_id']}"
    assert me["grants"] == {"billing": "editor"}
    assert me["home"] == "billing"
    assert "jobs:write" in me["permissions"]["billing"]
    assert "keys:write" not in me["permissions"]["billing"]
    api("DELETE", f"/v1/keys/{key['key_id']}", 204)
    shown = api("GET", f"/v1/keys/{key['key_id']}", 200).json()
    assert shown["state"] == "revoked"
    assert api("DELETE", f"/v1/keys/{key['key_id']}", 409).json()["type"].endswith(":conflict")


def test_secrets_are_in_the_answer_of_the_making_alone(api, database):
    key = made(api, grants={"billing": "editor"}, signs=True)
    signing = PublisherKey.parse(key["signing_key"])

    later = api("GET", "/v1/keys", 200).text + api("GET", f"/v1/keys/{key['key_id']}", 200).text
    later += api("GET", "/v1/audit", 200).text
    kept = str(database.execute("select to_jsonb(audit_log) from audit_log").fetchall())
    for secret in (key["token"].rpartition("_")[2], signing.secret.hex()):
        assert secret not in later
        assert secret not in kept
    assert signing.key_id == key["key_id"]
    assert made(api, grants={"billing": "editor"})["signing_key"] is None


UNFIT = [
    ({"grants": {}}, "/grants"),
    ({"grants": {"A b": "viewer"}}, "/grants"),
    ({"grants": {"a": "owner"}}, "/grants/a"),
    ({"grants": {"a": "viewer"}, "scopes": []}, "/scopes"),
    ({"grants": {"a": "viewer"}, "scopes": ["jobs:fly"]}, "/scopes/0"),
    ({"grants": {"a": "viewer"}, "rate_per_minute": 0}, "/rate_per_minute"),
    ({"grants": {"a": "viewer"}, "expires_in_seconds": 0}, "/expires_in_seconds"),
    ({"grants": {"a": "viewer"}, "platform": True}, "/grants"),
    ({"grants": {"a": "viewer"}, "secret": "mine"}, "/secret"),
    ({"grants": {"a": "viewer"}, "name": ""}, "/name"),
]


def test_a_key_that_means_nothing_is_refused_with_the_field(api):
    for body, pointer in UNFIT:
        problem = made(api, 422, **body)

        assert [item["pointer"] for item in problem["errors"]] == [pointer], body
        # Where a rule has allowed values, they are given apart from what is wrong.
        says_itself = "leave" in problem["errors"][0]["message"]
        assert bool(problem["errors"][0]["expected"]) is not says_itself, problem


def test_an_admin_of_a_namespace_makes_keys_for_it_and_no_further(api, token):
    admin = token("admin", "billing")

    made(api, key=admin, grants={"billing": "admin"})
    for body in ({"grants": {"other": "viewer"}}, {"grants": {"*": "viewer"}}, {"platform": True}):
        made(api, 403, key=admin, **body)
    made(api, 403, key=admin, grants={"billing": "viewer", "other": "viewer"})
    made(api, 403, key=token("editor", "billing"), grants={"billing": "viewer"})


def test_a_credential_with_scopes_makes_none_with_more(api):
    narrow = made(api, grants={"billing": "admin"}, scopes=["keys:write"])["token"]

    made(api, 403, key=narrow, grants={"billing": "viewer"})
    made(api, key=narrow, grants={"billing": "viewer"}, scopes=["keys:write"])


def test_a_key_that_expires_makes_none_that_outlive_it(api):
    expiring = made(api, grants={"billing": "admin"}, expires_in_seconds=3600)["token"]

    for longer in ({}, {"expires_in_seconds": 3700}):
        problem = made(api, 403, key=expiring, grants={"billing": "viewer"}, **longer)
        assert "cannot create keys that outlive it" in problem["detail"]
    made(api, key=expiring, grants={"billing": "viewer"}, expires_in_seconds=3000)


def test_keys_of_others_do_not_exist(api, token):
    foreign = made(api, grants={"other": "viewer"})["key_id"]
    wide = made(api, grants={"billing": "viewer", "other": "viewer"})["key_id"]
    admin = token("admin", "billing")

    unknown = api("GET", "/v1/keys/aaaaaaaaaaaa", 404, key=admin).json()
    seen = api("GET", f"/v1/keys/{foreign}", 404, key=admin).json()
    assert seen["detail"].replace(foreign, "aaaaaaaaaaaa") == unknown["detail"]
    api("DELETE", f"/v1/keys/{foreign}", 404, key=admin)
    api("GET", f"/v1/keys/{wide}", 200, key=admin)
    api("DELETE", f"/v1/keys/{wide}", 403, key=admin)
    listed = api("GET", "/v1/keys", 200, key=admin).json()["items"]
    assert foreign not in {key["key_id"] for key in listed}
    assert api("GET", "/v1/keys?namespace=other", 404, key=admin)


def test_who_only_looks_at_a_namespace_sees_none_of_its_keys(api, token):
    mixed = made(api, grants={"billing": "admin", "other": "viewer"})["token"]
    foreign = made(api, grants={"other": "editor"})["key_id"]

    listed = api("GET", "/v1/keys", 200, key=mixed).json()["items"]
    assert foreign not in {key["key_id"] for key in listed}
    api("GET", f"/v1/keys/{foreign}", 404, key=mixed)


def test_keys_are_listed_page_by_page(api):
    ids = sorted(made(api, grants={"billing": "viewer"})["key_id"] for _ in range(5))
    seen, cursor = [], None
    while True:
        params = {"namespace": "billing", "limit": 2} | ({"cursor": cursor} if cursor else {})
        page = api("GET", "/v1/keys", 200, params=params).json()
        seen += [key["key_id"] for key in page["items"] if not key["platform"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break

    assert seen == ids
    first = api("GET", "/v1/keys", 200, params={"limit": 1}).json()["next_cursor"]
    api("GET", "/v1/keys", 400, params={"limit": 1, "ended": True, "cursor": first})


def test_every_change_and_every_denial_has_one_entry(api, token):
    admin = token("admin", "billing")
    key = made(api, key=admin, grants={"billing": "viewer"})["key_id"]
    made(api, 403, key=admin, platform=True)
    api("DELETE", f"/v1/keys/{key}", 204)
    api("DELETE", f"/v1/keys/{key}", 409)

    entries = api("GET", "/v1/audit", 200).json()["items"]

    assert [(e["action"], e["outcome"]) for e in entries] == [
        ("key.revoke", "failed"),
        ("key.revoke", "done"),
        ("key.create", "denied"),
        ("key.create", "done"),
    ]
    assert entries[3]["object"] == f"key:{key}"
    assert entries[3]["namespace"] == "billing"
    assert entries[3]["after"]["grants"] == {"billing": "viewer"}
    assert entries[1]["before"]["state"] == "valid"
    assert "platform" in entries[2]["reason"]
    assert all(entry["request_id"] for entry in entries)


def test_the_log_is_read_by_admins_each_their_own(api, token):
    made(api, grants={"billing": "viewer"})
    made(api, grants={"other": "viewer"})
    made(api, grants={"billing": "viewer", "other": "viewer"})

    mine = api("GET", "/v1/audit", 200, key=token("admin", "billing")).json()["items"]
    assert [entry["namespace"] for entry in mine] == ["billing", "billing"]
    api("GET", "/v1/audit?namespace=other", 404, key=token("admin", "billing"))
    api("GET", "/v1/audit", 403, key=token("editor", "billing"))
    assert len(api("GET", "/v1/audit", 200).json()["items"]) == 4


def test_entries_are_found_by_what_was_done_and_when(api):
    key = made(api, grants={"billing": "viewer"})["key_id"]
    made(api, grants={"other": "viewer"})

    def found(**params):
        return [e["object"] for e in api("GET", "/v1/audit", 200, params=params).json()["items"]]

    assert found(object=f"key:{key}") == [f"key:{key}"]
    assert found(namespace="billing") == [f"key:{key}"]
    assert len(found(action="key.create")) == 2
    assert found(action="job.create") == []
    assert found(outcome="denied") == []
    assert found(actor="key:nobody") == []
    assert found(since="2100-01-01T00:00:00Z") == []
    assert found(until="2000-01-01T00:00:00Z") == []
    api("GET", "/v1/audit", 400, params={"since": "2026-01-01T00:00:00"})
    page = api("GET", "/v1/audit", 200, params={"limit": 1}).json()
    rest = api("GET", "/v1/audit", 200, params={"limit": 1, "cursor": page["next_cursor"]}).json()
    assert rest["items"][0]["object"] == f"key:{key}"
    assert rest["next_cursor"] is None


def test_a_platform_admin_is_told_what_it_is(api):
    me = api("GET", "/v1/me", 200).json()

    assert me["platform"]
    assert me["home"] is None
    assert "platform" in me["permissions"]["*"]
    assert me["scopes"] is None


def test_scopes_are_considered_in_what_one_may_do(api):
    key = made(api, grants={"billing": "admin"}, scopes=["jobs:read"], rate_per_minute=7)
    me = api("GET", "/v1/me", 200, key=key["token"]).json()

    assert me["permissions"] == {"billing": ["jobs:read"]}
    assert (me["scopes"], me["rate_per_minute"]) == (["jobs:read"], 7)
