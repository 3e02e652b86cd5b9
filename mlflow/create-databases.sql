-- Run once, when the database is made: one database a program, so that each can be dumped alone.
CREATE DATABASE prefect;
