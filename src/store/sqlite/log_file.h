/* SPDX-License-Identifier: Apache-2.0
 * SQLite's file layer with one change: what is written to the write-ahead log
 * is gathered in memory and handed to the system in large pieces. */
#ifndef HOLDFAST_STORE_SQLITE_LOG_FILE_H
#define HOLDFAST_STORE_SQLITE_LOG_FILE_H

/* The name to open a writing connection with; NULL if the layer could not be made. Any thread. */
const char *log_file_layer(void);

#endif
