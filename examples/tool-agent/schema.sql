-- The tables of a shop, and a role for the statements of the model. The owner of the database runs this once.
CREATE TABLE products (
  name text PRIMARY KEY,
  price numeric(8, 2) NOT NULL,
  stock integer NOT NULL
);
CREATE TABLE customers (
  id integer PRIMARY KEY,
  name text NOT NULL,
  password_hash text NOT NULL
);
INSERT INTO products VALUES ('lamp', 40, 12), ('chair', 85, 3), ('desk', 240, 0);
INSERT INTO customers VALUES (1, 'Ada', 'not for the model');

-- It reads the products, and nothing else. It cannot write, and a statement takes two seconds at most.
CREATE ROLE agent LOGIN CONNECTION LIMIT 5;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO agent;
GRANT SELECT ON products TO agent;
ALTER ROLE agent SET default_transaction_read_only = on;
ALTER ROLE agent SET statement_timeout = '2s';
ALTER ROLE agent SET temp_file_limit = '64MB';
