-- The tables of writefence, as createSchema() makes them.
CREATE TABLE writefence_schema (
  component text    PRIMARY KEY,
  version   integer NOT NULL
);

CREATE TABLE writefence_fence (
  id         bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope      text    COLLATE "C" NOT NULL,
  job_id     text    COLLATE "C" NOT NULL,
  generation bigint  NOT NULL CHECK (generation BETWEEN 0 AND 1000000000000000),
  holder     text    NOT NULL CHECK (holder IN ('none', 'unbound', 'lease')),
  lease_id   text    COLLATE "C" CHECK ((holder = 'lease') = (lease_id IS NOT NULL)),
  sealed     boolean NOT NULL,
  UNIQUE (scope, job_id)
) WITH (fillfactor = 80);

CREATE TABLE writefence_operation (
  fence_id     bigint NOT NULL REFERENCES writefence_fence,
  operation_id text   COLLATE "C" NOT NULL,
  status       text   NOT NULL CHECK (status IN ('in_flight', 'unknown', 'applied')),
  generation   bigint NOT NULL,
  fingerprint  text   COLLATE "C",
  attempt_id   text   COLLATE "C" CHECK ((status = 'applied') = (attempt_id IS NULL)),
  deadline     bigint CHECK ((status = 'in_flight') = (deadline IS NOT NULL)),
  applied_at   bigint CHECK ((status = 'applied') = (applied_at IS NOT NULL)),
  result       text   CHECK (status = 'applied' OR result IS NULL),
  PRIMARY KEY (fence_id, operation_id)
);

CREATE INDEX writefence_operation_unsettled
  ON writefence_operation (fence_id, status, generation) WHERE status <> 'applied';
CREATE INDEX writefence_operation_applied
  ON writefence_operation (applied_at) WHERE status = 'applied';

INSERT INTO writefence_schema (component, version) VALUES ('fence', 1);

CREATE TABLE writefence_lease (
  job_id      text    COLLATE "C" PRIMARY KEY,
  generation  bigint  NOT NULL CHECK (generation BETWEEN 0 AND 999999999999999),
  status      text    NOT NULL CHECK (status IN ('leased', 'released', 'completed')),
  owner       text    COLLATE "C" CHECK (owner IS NOT NULL OR status <> 'leased'),
  lease_id    text    COLLATE "C" CHECK ((lease_id IS NULL) = (owner IS NULL)),
  ttl         bigint  CHECK ((status = 'leased') = (ttl IS NOT NULL) AND ttl > 0),
  lease_until bigint  CHECK ((status = 'leased') = (lease_until IS NOT NULL)),
  ended_by    text    CHECK (ended_by IN ('holder', 'operator')),
  lapsed      boolean NOT NULL,
  ended_at    bigint  CHECK (ended_at IS NULL OR status <> 'leased'),
  CHECK ((status = 'leased') = (ended_by IS NULL))
) WITH (fillfactor = 80);

CREATE INDEX writefence_lease_ended ON writefence_lease (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX writefence_lease_status ON writefence_lease (status, job_id);
CREATE INDEX writefence_lease_owner ON writefence_lease (owner, job_id) WHERE owner IS NOT NULL;

INSERT INTO writefence_schema (component, version) VALUES ('lease', 1);
