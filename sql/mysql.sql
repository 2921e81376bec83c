-- The tables of writefence, as createSchema() makes them.
CREATE TABLE IF NOT EXISTS writefence_schema (
  component VARBINARY(32) NOT NULL,
  version   INT           NOT NULL,
  PRIMARY KEY (component)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET = ascii COLLATE = ascii_bin;

CREATE TABLE IF NOT EXISTS writefence_fence (
  scope      VARBINARY(1020) NOT NULL,
  job_id     VARBINARY(1020) NOT NULL,
  generation BIGINT          NOT NULL CHECK (generation >= 0),
  holder     ENUM('none', 'unbound', 'lease') NOT NULL,
  lease_id   VARBINARY(1020) NULL,
  sealed     TINYINT         NOT NULL CHECK (sealed IN (0, 1)),
  revision   BIGINT          NOT NULL,
  PRIMARY KEY (scope, job_id),
  CHECK ((holder = 'lease') = (lease_id IS NOT NULL))
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET = ascii COLLATE = ascii_bin;

CREATE TABLE IF NOT EXISTS writefence_operation (
  scope        VARBINARY(1020) NOT NULL,
  job_id       VARBINARY(1020) NOT NULL,
  operation_id VARBINARY(1020) NOT NULL,
  status       ENUM('in_flight', 'unknown', 'applied') NOT NULL,
  generation   BIGINT          NOT NULL,
  fingerprint  VARBINARY(1020) NULL,
  attempt_id   VARBINARY(1020) NULL,
  deadline     BIGINT          NULL,
  applied_at   BIGINT          NULL,
  result       LONGBLOB        NULL,
  PRIMARY KEY (scope, job_id, operation_id),
  KEY unsettled (status, scope, job_id, generation),
  KEY applied (applied_at),
  CHECK ((status = 'applied') = (attempt_id IS NULL)),
  CHECK ((status = 'in_flight') = (deadline IS NOT NULL)),
  CHECK ((status = 'applied') = (applied_at IS NOT NULL)),
  CHECK (status = 'applied' OR result IS NULL)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET = ascii COLLATE = ascii_bin;

INSERT IGNORE INTO writefence_schema (component, version)
VALUES ('fence', 1);

CREATE TABLE IF NOT EXISTS writefence_lease (
  job_id      VARBINARY(1020) NOT NULL,
  generation  BIGINT          NOT NULL CHECK (generation >= 0),
  status      ENUM('leased', 'released', 'completed') NOT NULL,
  owner       VARBINARY(1020) NULL,
  lease_id    VARBINARY(1020) NULL,
  ttl         BIGINT          NULL,
  lease_until BIGINT          NULL,
  ended_by    ENUM('holder', 'operator') NULL,
  lapsed      TINYINT         NOT NULL CHECK (lapsed IN (0, 1)),
  ended_at    BIGINT          NULL,
  revision    BIGINT          NOT NULL,
  PRIMARY KEY (job_id),
  KEY by_status (status, job_id),
  KEY by_owner (owner, job_id),
  KEY ended (ended_at),
  CHECK (status <> 'leased' OR (owner IS NOT NULL AND ttl > 0)),
  CHECK ((owner IS NULL) = (lease_id IS NULL)),
  CHECK ((status = 'leased') = (ttl IS NOT NULL)),
  CHECK ((status = 'leased') = (lease_until IS NOT NULL)),
  CHECK ((status = 'leased') = (ended_by IS NULL)),
  CHECK (status <> 'leased' OR ended_at IS NULL)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET = ascii COLLATE = ascii_bin;

INSERT IGNORE INTO writefence_schema (component, version)
VALUES ('lease', 1);
