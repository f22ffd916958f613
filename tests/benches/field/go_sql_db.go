// Two goroutines ask one database/sql.DB, whose driver answers at once.
//
// Known by the source of database/sql and by golang/go issue 78763: each query locks `mu` and takes a connection from
// `freeConn` beside it: one line for both goroutines, truly shared. The issue is of `waitDuration` and `numClosed`, which
// lie on that line too and suffer where connections are waited for and closed; here they are idle. Here, two
// goroutines take twice as long for each query as one: they wait for the lock, in part asleep, and then there is little
// to see.
//
// FIELD: {"language": "go", "apt": ["golang-go"], "findings": [
//   {"kinds": ["true-sharing", "mixed-sharing"], "names": ["sql.DB", "mu.state", ".freeConn"], "not_on": ["stack"], "missing": "partly"}],
//   "others": ["runtime.", "sync.", "heap", "driverConn"]}
package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"time"
)

type connector struct{}

type connection struct{}

func (connector) Connect(context.Context) (driver.Conn, error) { return connection{}, nil }
func (connector) Driver() driver.Driver                        { return nil }

func (connection) Prepare(string) (driver.Stmt, error) { return nil, errors.New("no statements") }
func (connection) Begin() (driver.Tx, error)           { return nil, errors.New("no transactions") }
func (connection) Close() error                        { return nil }
func (connection) Exec(string, []driver.Value) (driver.Result, error) {
	return driver.ResultNoRows, nil
}

func main() {
	db := sql.OpenDB(connector{})
	db.SetMaxIdleConns(4)
	for i := 0; i < 2; i++ {
		go func() {
			for {
				if _, err := db.Exec("ask"); err != nil {
					panic(err)
				}
			}
		}()
	}
	time.Sleep(300 * time.Millisecond)
	fmt.Println("ready", os.Getpid())
	time.Sleep(2 * time.Minute)
}
