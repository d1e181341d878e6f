module andiron.test/program

go 1.18
